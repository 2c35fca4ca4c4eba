"""Messages as classes that read like Kafka's specification.

A message class says for all its versions at once which fields it has, one line a field:

    transactional_id: str | None = t.string("3+", nullable="3+", default=None)      # from v3 on, where it may be null

`compile(version)` picks the fields of one version, once, and keeps them as a flat plan: a list of (name, codec).
Encoding and decoding are short loops over that list.  Kafka's rules about versions live here and nowhere else:

- A field that a version lacks decodes to its default.  Encoding it there is fine at its default or when it is
  `ignorable` (the peer can do without), else an error: what was asked for would be lost without a word.
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
from hmb.protocol.allowance import ALLOWANCE, ITEM_SIZE
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode, KafkaError, ProtocolError


def version_range(text: str) -> range:
    """Kafka's notation: "3" or "0-12" or "3+" or "none"."""
    if text == "none":
        return range(0)
    first, _, last = text.rstrip("+").partition("-")
    return range(int(first), 2**15 if text.endswith("+") else int(last or first) + 1)


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

    def length(self, flexible: bool) -> p.FieldCodec:
        """How the length in front of the value is written."""
        if flexible and self.compact:
            return p.COMPACT_LENGTH
        return p.INT16 if self.kind == "string" else p.INT32

    def codec(self, version: int, flexible: bool) -> p.FieldCodec:
        """How the value is written in this version."""
        nullable = version in version_range(self.nullable)
        if self.struct is not None:
            plan = self.struct.compile(version, flexible)
            codec = p.FieldCodec(plan.encode, plan.decode)
            return p.optional(codec, tagged=self.tag is not None) if nullable else codec
        if self.item is not None:
            return p.array(self.length(flexible), self.item.codec(version, flexible), nullable)
        sized = p.SIZED.get(self.kind)
        return sized(self.length(flexible), nullable) if sized else p.FIXED[self.kind]


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


_TAGGED = p.bytestring(p.UVARINT, nullable=False)  # the size and the bytes of a tagged field

Defaults: TypeAlias = tuple[dict[str, Any], list[tuple[str, Callable[[], Any]]]]


def defaults(fields: dict[str, Field]) -> Defaults:
    """The values that all structs can share, and for the others what makes them."""
    shared = {name: field.default for name, field in fields.items() if not isinstance(field.default, type)}
    return shared, [(name, field.default) for name, field in fields.items() if name not in shared]


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
        self.defaults = defaults(lacking)
        self.unsaid = [(n, f.absent()) for n, f in lacking.items() if n not in here and not f.ignorable]

    def decode(self, buffer: memoryview, position: int) -> tuple[Any, int]:
        """Read one struct; ProtocolError on anything it cannot be."""
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
                    position = self._decode_tags(values, buffer, position)
                else:
                    position += 1  # there are none, as in nearly every struct
        except p.MALFORMED as error:
            what = error if isinstance(error, ValueError) else "the bytes end here"
            raise ProtocolError(f"{self._place(name)}, byte {position} of {len(buffer)}: {what}") from error
        result = object.__new__(self.struct)
        result.__dict__ = values
        return result, position

    def _decode_tags(self, values: dict[str, Any], buffer: memoryview, position: int) -> int:
        count, position = p.decode_uvarint(buffer, position)
        ALLOWANCE.spend(min(count, len(buffer) - position) * ITEM_SIZE)
        seen: set[int] = set()
        for _ in range(count):
            tag, position = p.decode_uvarint(buffer, position)
            data, end = _TAGGED.decode(buffer, position)
            if tag in seen:
                raise ValueError(f"tag {tag} comes twice")
            seen.add(tag)
            if tag in self.tagged:
                name, codec, _ = self.tagged[tag]
                values[name], position = codec.decode(buffer[:end], end - len(data))
                if position != end:
                    raise ValueError(f"tag {tag} has length {len(data)}, {end - position} more than {name} takes")
            else:
                values.setdefault("unknown_tagged_fields", {})[tag] = bytes(data)
            position = end
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
        if self.flexible and (self.tagged or "unknown_tagged_fields" in values):
            self._encode_tags(out, values)
        elif self.flexible:
            out.append(0)  # no tagged field, as in nearly every struct

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
            _TAGGED.encode(out, tags[tag])

    def _place(self, name: str) -> str:
        return f"{self.struct.__qualname__}.{name} in version {self.version}"


@dataclass_transform(kw_only_default=True)
class Struct:
    """A message or a part of one.  The constructor takes fields by name; what is not named is at its default.

    `==` compares class and fields.  `repr` leaves out what is at its default; it is Python while `records` are small.
    """

    fields: ClassVar[dict[str, Field]]
    versions: ClassVar[range]
    flexible: ClassVar[range]
    unknown_tagged_fields: Mapping[int, bytes] = MappingProxyType({})  # tag -> bytes, kept as they came
    _plans: ClassVar[dict[tuple[int, bool], Plan]]
    _defaults: ClassVar[Defaults]

    def __init_subclass__(cls, versions: str = "0+", flexible: str = "none") -> None:
        super().__init_subclass__()
        cls.fields = {name: value for name, value in vars(cls).items() if isinstance(value, Field)}
        cls.versions, cls.flexible = version_range(versions), version_range(flexible)
        cls._plans, cls._defaults = {}, defaults(cls.fields)

    def __init__(self, **values: Any) -> None:
        shared, fresh = self._defaults
        self.__dict__ = said = shared | values
        for name, new in fresh:
            if name not in said:
                said[name] = new()
        if len(said) > len(self.fields):
            strange = ", ".join(sorted(said.keys() - self.fields.keys()))
            raise TypeError(f"{type(self).__qualname__} has no field {strange}")

    def __eq__(self, other: object) -> bool:
        return self.__dict__ == other.__dict__ if type(other) is type(self) else NotImplemented

    def __repr__(self) -> str:
        said = [(n, v) for n, f in self.fields.items() if (v := getattr(self, n)) != f.absent()]
        values = (f"{n}={bytes(v) if isinstance(v, memoryview) and len(v) <= 512 else v!r}" for n, v in said)
        return f"{type(self).__qualname__}({', '.join(values)})"

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
    def first_version(cls, path: str) -> int:
        """Return the first version that has a field.  `path` leads through structs: "topics.topic_id"."""
        name, _, rest = path.partition(".")
        field = cls.fields[name]
        item = field if field.item is None else field.item
        if rest and item.struct is not None:
            return item.struct.first_version(rest)
        return max(version_range(field.versions)[0], cls.versions[0])

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
