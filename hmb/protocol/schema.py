"""Message classes that read like Kafka's specification, and the plans that encode and decode them.

A message class declares the fields of all its versions, one line for each field::

    transactional_id: str | None = t.string("3+", nullable="3+", default=None)  # This field exists from version 3 on.

`compile(version)` selects the fields of one version, once, and stores them as a *plan*: a flat list of names and
codecs. Encoding and decoding are short loops over this list. This module alone implements three rules:

- A field that does not exist in a version decodes to its default value. Encoding a different value in that version is
  an error, because the receiver would not get the value. An `ignorable` field is an exception, because the receiver
  does not need it.
- From its `flexible` version on, a message writes lengths in the compact form, and every struct ends with tagged fields
  (KIP-482, see `tagged_fields`).
- Any bytes decode to a message or raise a ProtocolError, which names the field and the position.

For example, `MetadataRequest.compile(1)` has the plan `[("topics", array of structs)]`, and the plan of a topic is
`[("name", string)]`. The topics ["a"] are then encoded as `00 00 00 01 00 01 61`: count 1, length 1, "a".

Source: Kafka's generator of message classes (clients/src/main/resources/common/message/README.md), KIP-482.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeAlias, cast, dataclass_transform
from uuid import UUID

from hmb.protocol import primitives as p
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode, KafkaError, ProtocolError
from hmb.protocol.tagged_fields import TaggedField, TaggedFields


def version_range(text: str) -> range:
    """Return the versions that a text in Kafka's notation stands for: "3", "0-12", "3+" or "none"."""
    if text == "none":
        return range(0)
    first, _, last = text.rstrip("+").partition("-")
    return range(int(first), 2**15 if text.endswith("+") else int(last or first) + 1)


@dataclass(frozen=True)
class Field:
    """One line in the declaration of a message class."""

    kind: str  # Kafka's name of the type, or "array", or "struct"
    versions: str = "0+"
    _: KW_ONLY
    nullable: str = "none"
    default: Any  # a value, or a class (`list` or a struct) that makes a new value for each message
    ignorable: bool = False
    tag: int | None = None  # the number of a tagged field; None for any other field
    compact: bool = True  # whether flexible versions write its length in the compact form
    item: Field | None = None  # the type of an array's items
    struct: type[Struct] | None = None

    def default_value(self) -> Any:
        return self.default() if isinstance(self.default, type) else self.default

    def length(self, flexible: bool) -> p.FieldCodec:
        """Return the codec of the length that precedes the field's value."""
        if flexible and self.compact:
            return p.COMPACT_LENGTH
        return p.INT16 if self.kind == "string" else p.INT32

    def codec(self, version: int, flexible: bool) -> p.FieldCodec:
        """Return the codec of the value in this version."""
        nullable = version in version_range(self.nullable)
        if self.struct is not None:
            plan = self.struct.compile(version, flexible)
            codec = p.FieldCodec(plan.encode, plan.decode)
            return p.optional(codec, tagged=self.tag is not None) if nullable else codec
        if self.item is not None:
            return p.array(self.length(flexible), self.item.codec(version, flexible), nullable)
        sized = p.SIZED.get(self.kind)
        return sized(self.length(flexible), nullable) if sized else p.FIXED[self.kind]


# The functions that declare a field: t.string("3+", nullable="3+", default=None). For a type checker, each function
# returns a value of the field's type.
Maker: TypeAlias = Callable[..., Any]

boolean: Maker = partial(Field, "bool", default=False)
int8: Maker = partial(Field, "int8", default=0)
int16: Maker = partial(Field, "int16", default=0)
int32: Maker = partial(Field, "int32", default=0)
int64: Maker = partial(Field, "int64", default=0)
uint16: Maker = partial(Field, "uint16", default=0)
uint32: Maker = partial(Field, "uint32", default=0)
float64: Maker = partial(Field, "float64", default=0.0)
uuid: Maker = partial(Field, "uuid", default=UUID(int=0))
string: Maker = partial(Field, "string", default="")
bytestring: Maker = partial(Field, "bytes", default=b"")
records: Maker = partial(Field, "records", default=None)


def struct(struct: type[Struct], versions: str = "0+", **options: Any) -> Any:
    """Declare a struct inside a struct. Its default is a struct with default values in all fields."""
    return Field("struct", versions, struct=struct, **{"default": struct, **options})


def array(item: type[Struct] | Maker, versions: str = "0+", **options: Any) -> Any:
    """Declare an array of structs, `t.array(Topic)`, or of primitives, `t.array(t.int32)`."""
    each = struct(item) if isinstance(item, type) else item()
    return Field("array", versions, item=each, **{"default": list, **options})


Defaults: TypeAlias = tuple[dict[str, Any], list[tuple[str, Callable[[], Any]]]]


def defaults(fields: dict[str, Field]) -> Defaults:
    """Return the default values that all structs can share, and the classes that make the other default values."""
    shared = {name: field.default for name, field in fields.items() if not isinstance(field.default, type)}
    return shared, [(name, field.default) for name, field in fields.items() if name not in shared]


class Plan:
    """Encodes and decodes a struct in one version. It lists the fields of that version in order, with their codecs."""

    def __init__(self, struct: type[Struct], version: int, flexible: bool) -> None:
        self.struct, self.version, self.flexible = struct, version, flexible
        existing = {name: field for name, field in struct.fields.items() if version in version_range(field.versions)}
        codecs = {name: field.codec(version, flexible) for name, field in existing.items()}
        self.fields = {name: field for name, field in existing.items() if field.tag is None}
        self.encoders = [(name, codecs[name].encode) for name in self.fields]
        self.decoders = [(name, codecs[name].decode) for name in self.fields]
        tagged = [(field.tag, name, field) for name, field in existing.items() if field.tag is not None]
        self.tagged = TaggedFields([TaggedField(tag, name, codecs[name], f.default_value()) for tag, name, f in tagged])
        missing = {name: field for name, field in struct.fields.items() if name not in self.fields}
        self.defaults = defaults(missing)
        lost = {name: f for name, f in missing.items() if name not in existing and not f.ignorable}
        self.required_defaults = [(name, field.default_value()) for name, field in lost.items()]

    def decode(self, buffer: memoryview, position: int) -> tuple[Any, int]:
        """Return the struct at `position`, and the position after it. Raises ProtocolError for malformed bytes."""
        shared, fresh = self.defaults
        values = shared.copy()
        for name, new in fresh:
            values[name] = new()
        try:
            for name, decode in self.decoders:
                values[name], position = decode(buffer, position)
            if self.flexible:
                name = "tagged fields"
                if buffer[position]:
                    position = self.tagged.decode(values, buffer, position)
                else:
                    position += 1  # Nearly every struct has no tagged fields.
        except p.MALFORMED as error:
            reason = error if isinstance(error, ValueError) else "the bytes end here"
            raise ProtocolError(f"{self._path(name)}, byte {position} of {len(buffer)}: {reason}") from error
        result = object.__new__(self.struct)
        result.__dict__ = values
        return result, position

    def encode(self, out: p.Output, message: Struct) -> None:
        """Write one struct.

        Raises KafkaError with UNSUPPORTED_VERSION if a field that the version lacks has another value than its
        default, and ValueError if a value does not fit into its field.
        """
        values = message.__dict__
        for name, default in self.required_defaults:
            if values[name] != default:
                reason = f"there is no {self._path(name)}, but its value is {values[name]!r}"
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, reason)
        try:
            for name, encode in self.encoders:
                encode(out, values[name])
        except p.UNWRITABLE as error:
            raise ValueError(f"{self._path(name)} cannot be {values[name]!r}: {error}") from error
        if self.flexible and (self.tagged.by_tag or "unknown_tagged_fields" in values):
            self.tagged.encode(out, values)
        elif self.flexible:
            out.append(0)  # Nearly every struct has no tagged fields.

    def _path(self, name: str) -> str:
        return f"{self.struct.__qualname__}.{name} in version {self.version}"


@dataclass_transform(kw_only_default=True)
class Struct:
    """A message or a part of a message. The constructor takes fields by name. All other fields have their defaults.

    `==` compares the class and the fields. `repr` omits fields with default values. The text of `repr` is valid Python
    if all `records` have at most 512 bytes.
    """

    fields: ClassVar[dict[str, Field]]
    versions: ClassVar[range]
    flexible: ClassVar[range]
    unknown_tagged_fields: Mapping[int, bytes] = MappingProxyType({})  # tag -> bytes, unchanged
    _plans: ClassVar[dict[tuple[int, bool], Plan]]
    _defaults: ClassVar[Defaults]

    def __init_subclass__(cls, versions: str = "0+", flexible: str = "none") -> None:
        super().__init_subclass__()
        cls.fields = {name: value for name, value in vars(cls).items() if isinstance(value, Field)}
        cls.versions, cls.flexible = version_range(versions), version_range(flexible)
        cls._plans, cls._defaults = {}, defaults(cls.fields)

    def __init__(self, **values: Any) -> None:
        shared, fresh = self._defaults
        self.__dict__ = fields = shared | values
        for name, new in fresh:
            if name not in fields:
                fields[name] = new()
        if len(fields) > len(self.fields):
            unknown = ", ".join(sorted(fields.keys() - self.fields.keys()))
            raise TypeError(f"{type(self).__qualname__} has no field {unknown}")

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if type(other) is type(self) else NotImplemented

    def __repr__(self) -> str:
        fields = [(n, v) for n, f in self.fields.items() if (v := getattr(self, n)) != f.default_value()]
        values = (f"{n}={bytes(v) if isinstance(v, memoryview) and len(v) <= 512 else v!r}" for n, v in fields)
        return f"{type(self).__qualname__}({', '.join(values)})"

    @classmethod
    def compile(cls, version: int, flexible: bool | None = None) -> Plan:
        """Return the plan of one version. A struct inside a message gets `flexible` from the message.

        Raises KafkaError with UNSUPPORTED_VERSION if the class does not have this version.
        """
        key = version, version in cls.flexible if flexible is None else flexible
        if key not in cls._plans:
            if version not in cls.versions:
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{cls.__qualname__} has no version {version}")
            cls._plans[key] = Plan(cls, *key)
        return cls._plans[key]

    @classmethod
    def first_version(cls, path: str) -> int:
        """Return the first version that has the field at `path`. Dots lead into structs: "topics.topic_id"."""
        name, _, rest = path.partition(".")
        field = cls.fields[name]
        item = field if field.item is None else field.item
        if rest and item.struct is not None:
            return item.struct.first_version(rest)
        return max(version_range(field.versions)[0], cls.versions[0])

    @classmethod
    def decode_prefix(cls, buffer: bytes | memoryview, version: int, position: int = 0) -> tuple[Self, int]:
        """Return the struct that begins at `position`, and the position after it. Raises ProtocolError."""
        return cls.compile(version).decode(memoryview(buffer), position)

    @classmethod
    def decode(cls, buffer: bytes | memoryview, version: int, position: int = 0) -> Self:
        """Return the struct that fills the buffer from `position` to its end. Raises ProtocolError."""
        message, end = cls.decode_prefix(buffer, version, position)
        if end != len(buffer):
            raise ProtocolError(f"{cls.__qualname__} in version {version} ends at byte {end} of {len(buffer)}")
        return message

    def encode_parts(self, version: int) -> list[p.Part]:
        """Return the encoded message in parts: bytes, and between them the `records` without a copy."""
        out = p.Output()
        self.compile(version).encode(out, self)
        return out.parts()

    def encode(self, version: int) -> bytes:
        """Return the encoded message as one byte string. The message has no `records` in a file."""
        return b"".join(cast(list[bytes], self.encode_parts(version)))


class Request(Struct):
    """A message that a client sends. Its header (headers.py) has version 2 in flexible versions, and 1 in others."""

    api_key: ClassVar[ApiKey]

    def __init_subclass__(cls, api_key: ApiKey, versions: str, flexible: str = "none") -> None:
        super().__init_subclass__(versions, flexible)
        cls.api_key = api_key

    @classmethod
    def header_version(cls, version: int) -> int:
        return 2 if version in cls.flexible else 1


class Response(Struct):
    """A message that a broker sends, in the request's version.

    Its header has version 1 in flexible versions, and 0 in others.
    """

    api_key: ClassVar[ApiKey]
    flexible_header: ClassVar[range]  # equals `flexible`, except in ApiVersionsResponse

    def __init_subclass__(cls, api_key: ApiKey, versions: str, flexible: str = "none", header: str = "") -> None:
        super().__init_subclass__(versions, flexible)
        cls.api_key, cls.flexible_header = api_key, version_range(header or flexible)

    @classmethod
    def header_version(cls, version: int) -> int:
        return 1 if version in cls.flexible_header else 0
