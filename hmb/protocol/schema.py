"""Messages as classes that read like Kafka's specification.

A message class says for all its versions at once which fields it has, one line a field:

    transactional_id: str | None = t.string("3+", nullable="3+", default=None)
                                          in versions 3 and later; may be null there; null where it is not said

`compile(version)` picks the fields of one version, once, and keeps them as a flat plan: a list of (name, codec).
Encoding and decoding are short loops over that list.  Kafka's rules about versions live here and nowhere else:

- A field that a version lacks decodes to its default.  Encoding it there is fine at its default or when it is
  `ignorable` (the peer can do without), else it is an error: what was asked for would be lost without a word.
- From its `flexible` version on, a message writes lengths compactly and every struct ends with *tagged fields*
  (KIP-482): a count, then (tag, size, bytes) in the order of tags.  A field at its default is not written.  A reader
  keeps the tags it does not know (`unknown_tagged_fields`) and writes them back.
- Whatever else the bytes are, reading them gives a message or a ProtocolError with the field and the position.

Source: Kafka's generator of message classes (clients/src/main/resources/common/message/README.md), KIP-482.
"""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeAlias, cast, dataclass_transform
from uuid import UUID

from hmb.protocol import primitives as p
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode, KafkaError, ProtocolError

ANY_VERSION = 0x7FFF  # versions are int16


def version_range(text: str) -> range:
    """Kafka's notation: "3" or "0-12" or "3+" or "none"."""
    if text == "none":
        return range(0)
    first, dash, last = text.partition("-")
    if first.endswith("+"):
        return range(int(first[:-1]), ANY_VERSION + 1)
    return range(int(first), int(last if dash else first) + 1)


@dataclass(frozen=True)
class Field:
    """One line of a message's definition."""

    kind: str  # Kafka's word for the type; "array"; "struct"
    versions: str = "0+"
    _: KW_ONLY
    nullable: str = "none"
    default: Any  # `list` or a struct's class: a new one each time
    ignorable: bool = False
    tag: int | None = None  # a tagged field, wherever it exists
    compact: bool = True  # its length, in flexible versions
    item: "Field | None" = None  # of an array
    struct: "type[Struct] | None" = None

    def absent(self) -> Any:
        """The value where nothing is said."""
        return self.default() if isinstance(self.default, type) else self.default

    def length(self, flexible: bool) -> p.Codec:
        """How the length in front of the value is written."""
        if flexible and self.compact:
            return p.COMPACT_LENGTH
        return p.INT16 if self.kind == "string" else p.INT32

    def codec(self, version: int, flexible: bool) -> p.Codec:
        """How the value is written in this version."""
        nullable = version in version_range(self.nullable)
        if self.struct is not None:
            plan = self.struct.compile(version, flexible)
            codec = p.Codec(plan.encode, plan.decode)
            return p.optional(codec) if nullable else codec
        if self.item is not None:
            return p.array(self.length(flexible), self.item.codec(version, flexible), nullable)
        if self.kind in p.SIZED:
            return p.SIZED[self.kind](self.length(flexible), nullable)
        return p.FIXED[self.kind]


# What stands on a field's line: t.string("3+", nullable="3+", default=None).  A type checker sees the field's value.
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


def struct(struct: "type[Struct]", versions: str = "0+", **options: Any) -> Any:
    """A struct inside a struct; by default one at its own defaults."""
    return Field("struct", versions, struct=struct, **{"default": struct, **options})


def array(item: "type[Struct] | Maker", versions: str = "0+", **options: Any) -> Any:
    """An array of structs, `t.array(Topic)`, or of primitives, `t.array(t.int32)`."""
    each = struct(item) if isinstance(item, type) else item()
    return Field("array", versions, item=each, **{"default": list, **options})


class Plan:
    """One struct in one version: which fields, in which order, written how."""

    def __init__(self, struct: "type[Struct]", version: int, flexible: bool) -> None:
        self.struct, self.version, self.flexible = struct, version, flexible
        here = {name: field for name, field in struct.fields.items() if version in version_range(field.versions)}
        codecs = {name: field.codec(version, flexible) for name, field in here.items()}
        self.fields = {name: field for name, field in here.items() if field.tag is None}
        self.encoders = [(name, codecs[name].encode) for name in self.fields]
        self.decoders = [(name, codecs[name].decode) for name in self.fields]
        tagged = sorted((field.tag, name) for name, field in here.items() if field.tag is not None)
        self.tagged = {tag: (name, codecs[name], here[name].absent()) for tag, name in tagged}
        lacking = {name: field for name, field in struct.fields.items() if name not in self.fields}
        self.constants = {name: field.default for name, field in lacking.items() if field.absent() is field.default}
        self.fresh = [(name, field.absent) for name, field in lacking.items() if name not in self.constants]
        self.unsaid = [(n, f.absent()) for n, f in lacking.items() if n not in here and not f.ignorable]

    def decode(self, buffer: memoryview, position: int) -> tuple[Any, int]:
        """Read one struct; ProtocolError on anything it cannot be."""
        values = self.constants.copy()
        for name, absent in self.fresh:
            values[name] = absent()
        try:
            for name, decode in self.decoders:
                values[name], position = decode(buffer, position)
            if self.flexible:
                name = "tagged fields"
                position = self._decode_tags(values, buffer, position)
        except p.MALFORMED as error:
            what = error if isinstance(error, ValueError) else "the bytes end here"
            raise ProtocolError(f"{self._place(name)}, byte {position} of {len(buffer)}: {what}") from error
        result = object.__new__(self.struct)
        result.__dict__ = values
        return result, position

    def _decode_tags(self, values: dict[str, Any], buffer: memoryview, position: int) -> int:
        count, position = p.decode_uvarint(buffer, position)
        unknown: dict[int, bytes] = {}
        seen: set[int] = set()
        for _ in range(count):
            tag, position = p.decode_uvarint(buffer, position)
            size, position = p.decode_uvarint(buffer, position)
            end = position + size
            if end > len(buffer) or tag in seen:
                raise ValueError(f"tag {tag} comes twice, or {size} bytes are more than are left")
            seen.add(tag)
            if tag in self.tagged:
                name, codec, _ = self.tagged[tag]
                values[name], position = codec.decode(buffer[:end], position)
                if position != end:
                    raise ValueError(f"tag {tag} has length {size}, {end - position} bytes more than {name} takes")
            else:
                unknown[tag] = bytes(buffer[position:end])
                position = end
        if unknown:
            values["unknown_tagged_fields"] = unknown
        return position

    def encode(self, out: p.Output, message: "Struct") -> None:
        """Write one struct; KafkaError if it holds something that this version cannot say."""
        values = message.__dict__
        for name, default in self.unsaid:
            if values[name] != default:
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"no {self._place(name)} (it is {values[name]!r})")
        try:
            for name, encode in self.encoders:
                encode(out, values[name])
        except p.UNWRITABLE as error:
            raise ValueError(f"{self._place(name)} cannot be {values[name]!r}: {error}") from error
        if self.flexible:
            self._encode_tags(out, values)

    def _encode_tags(self, out: p.Output, values: dict[str, Any]) -> None:
        tags = dict(values.get("unknown_tagged_fields", ()))
        for tag, (name, codec, default) in self.tagged.items():
            if values[name] != default:
                data = p.Output()
                codec.encode(data, values[name])
                tags[tag] = b"".join(cast(list[bytes], data.parts()))
        p.encode_uvarint(out, len(tags))
        for tag in sorted(tags):
            p.encode_uvarint(out, tag)
            p.encode_uvarint(out, len(tags[tag]))
            out += tags[tag]

    def _place(self, name: str) -> str:
        return f"{self.struct.__qualname__}.{name} in version {self.version}"


@dataclass_transform(kw_only_default=True)
class Struct:
    """A message or a part of one.  The constructor takes fields by name; what is not named is at its default.

    `==` compares class and fields.  `repr` leaves out what is at its default; it is Python while `records` are small.
    """

    fields: ClassVar[dict[str, Field]] = {}
    versions: ClassVar[range] = version_range("0+")
    flexible: ClassVar[range] = version_range("none")
    unknown_tagged_fields: Mapping[int, bytes] = MappingProxyType({})  # tag -> bytes, kept as they came
    _plans: ClassVar[dict[tuple[int, bool], Plan]]

    def __init_subclass__(cls, versions: str = "0+", flexible: str = "none") -> None:
        super().__init_subclass__()
        cls.fields = {name: value for name, value in vars(cls).items() if isinstance(value, Field)}
        cls.versions, cls.flexible = version_range(versions), version_range(flexible)
        cls._plans = {}

    def __init__(self, **values: Any) -> None:
        strange = values.keys() - self.fields.keys()
        if strange:
            raise TypeError(f"{type(self).__qualname__} has no field {', '.join(sorted(strange))}")
        self.__dict__ = {name: field.absent() for name, field in self.fields.items()} | values

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if type(other) is type(self) else NotImplemented

    def __repr__(self) -> str:
        said = [(n, v) for n, f in self.fields.items() if (v := getattr(self, n)) != f.absent()]
        return f"{type(self).__qualname__}({', '.join(f'{name}={_show(value)}' for name, value in said)})"

    @classmethod
    def compile(cls, version: int, flexible: bool | None = None) -> Plan:
        """The plan of one version.  A struct inside a message is as flexible as the message."""
        key = version, version in cls.flexible if flexible is None else flexible
        if key not in cls._plans:
            if version not in cls.versions:
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{cls.__qualname__} has no version {version}")
            cls._plans[key] = Plan(cls, *key)
        return cls._plans[key]

    @classmethod
    def decode_prefix(cls, buffer: bytes | memoryview, version: int, position: int = 0) -> tuple[Self, int]:
        """Read the struct that begins at `position`; says where it ends."""
        return cls.compile(version).decode(memoryview(buffer), position)

    @classmethod
    def decode(cls, buffer: bytes | memoryview, version: int, position: int = 0) -> Self:
        """Read the struct that fills the buffer from `position` to its very end."""
        message, end = cls.decode_prefix(buffer, version, position)
        if end != len(buffer):
            raise ProtocolError(f"{cls.__qualname__} in version {version} ends at byte {end} of {len(buffer)}")
        return message

    def encode_parts(self, version: int) -> list[p.Part]:
        """What goes on the wire, in order: bytes, and in between `records` as they were given."""
        out = p.Output()
        self.compile(version).encode(out, self)
        return out.parts()

    def encode(self, version: int) -> bytes:
        """The same as one byte string; not for `records` that lie in a file."""
        return b"".join(cast(list[bytes], self.encode_parts(version)))


def _show(value: Any) -> str:
    if isinstance(value, bytes | memoryview):
        return repr(bytes(value)) if len(value) <= 512 else f"<{len(value)} bytes>"
    return repr(value)


class Request(Struct):
    """What a client sends.  Its header (headers.py) is version 2 in flexible versions, else 1."""

    api_key: ClassVar[ApiKey]

    def __init_subclass__(cls, api_key: ApiKey, versions: str, flexible: str = "none") -> None:
        super().__init_subclass__(versions, flexible)
        cls.api_key = api_key

    @classmethod
    def header_version(cls, version: int) -> int:
        return 2 if version in cls.flexible else 1


class Response(Struct):
    """What a broker answers, in the request's version.  Its header is version 1 in flexible versions, else 0."""

    api_key: ClassVar[ApiKey]
    flexible_header: ClassVar[range]  # `header="none"` is ApiVersions' quirk

    def __init_subclass__(cls, api_key: ApiKey, versions: str, flexible: str = "none", header: str = "") -> None:
        super().__init_subclass__(versions, flexible)
        cls.api_key, cls.flexible_header = api_key, version_range(header or flexible)

    @classmethod
    def header_version(cls, version: int) -> int:
        return 1 if version in cls.flexible_header else 0
