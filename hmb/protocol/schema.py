"""The base classes of messages. They also encode and decode each version of a message.

A message class declares the fields of all versions of a message, with one line for each field (fields.py):
    transactional_id: str | None = t.string("3+", nullable="3+", default=None)  # This field exists from version 3 on.

A *codec* encodes and decodes the values of one type. The method `compile(version)` returns a *plan*: the fields
that this version has, with a codec for each field. To encode or decode a message, a loop calls the codecs of
the plan one after the other.

Three rules apply to the encoding and decoding of all messages:
- A version can lack some fields. The decoder sets such a field to its default value. If the field has another
  value, the encoder raises an error, because this value would be lost. But if the field is declared with
  `ignorable=True`, the encoder omits it without an error.
- The argument `flexible` of a message class names the *flexible* versions. In these versions, lengths are
  encoded in fewer bytes, and each struct ends with tagged fields (KIP-482, see `tagged_fields`).
- If bytes are malformed, the decoder raises a ProtocolError. The error message contains the field and the
  position.

For example, `MetadataRequest.compile(1)` returns the plan `[("topics", array of structs)]`. Each struct stands for a
topic, and has the plan `[("name", string)]`. A request for the topic "a" is encoded as `00 00 00 01 00 01 61`. The
first four bytes contain the number of items in the array (1). The next two bytes contain the length of the name (1
byte), and 61 is the letter "a".

Source: Kafka's generator of message classes (clients/src/main/resources/common/message/README.md), KIP-482.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeAlias, cast, dataclass_transform

from hmb.protocol import primitives as p
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode, KafkaError, ProtocolError
from hmb.protocol.fields import Field, version_range
from hmb.protocol.tagged_fields import TaggedField, TaggedFields

Defaults: TypeAlias = tuple[dict[str, Any], list[tuple[str, Callable[[], Any]]]]


def defaults(fields: dict[str, Field]) -> Defaults:
    """Return the default values of fields, in two parts.

    The first part maps names to values that all structs can share, for example 0. A list cannot be shared, because
    it can change. So the second part contains the other fields as pairs of a name and a class, for example
    ("topics", list). The caller calls the class to create a new default value for each struct.
    """
    shared = {name: field.default for name, field in fields.items() if not isinstance(field.default, type)}
    return shared, [(name, field.default) for name, field in fields.items() if name not in shared]


class Plan:
    """Encodes and decodes a struct in one version.

    A plan contains the fields of this version with their codecs, in the order of their bytes.
    """

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
                    position += 1  # The faster path: most structs have no tagged fields.
        except p.MALFORMED as error:
            reason = error if isinstance(error, ValueError) else "the bytes end here"
            raise ProtocolError(f"{self._path(name)}, byte {position} of {len(buffer)}: {reason}") from error
        result = object.__new__(self.struct)
        result.__dict__ = values
        return result, position

    def encode(self, out: p.Output, message: Struct) -> None:
        """Append the encoded `message` to `out`.

        Raises ValueError if a value does not fit into its field.

        The method omits each field that does not exist in this version of the message. Raises KafkaError with
        UNSUPPORTED_VERSION if an omitted field has a value other than the default, unless the field is ignorable.
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
            out.append(0)  # The faster path: most structs have no tagged fields.

    def _path(self, name: str) -> str:
        return f"{self.struct.__qualname__}.{name} in version {self.version}"


@dataclass_transform(kw_only_default=True)
class Struct:
    """The base class of messages, and of the structs inside messages.

    The constructor has one keyword argument for each field. A field without an argument gets its default value.
    Two structs are equal if they have the same class and the same values.

    `repr` returns Python code that creates the struct, without fields that have their default values. It does not
    show records of more than 512 bytes. The result is then not valid Python code.
    """

    fields: ClassVar[dict[str, Field]]
    versions: ClassVar[range]
    flexible: ClassVar[range]
    unknown_tagged_fields: Mapping[int, bytes] = MappingProxyType({})  # tag -> encoded value
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
        """Return the plan of one version: its fields and their codecs, in the order of encoding.

        A *flexible* version encodes lengths in fewer bytes (KIP-482).

        For a message, the argument `flexible` is None: the message class declares which versions are flexible. A
        struct inside a message does not declare this. For a struct, the argument is True if the version of the
        message is flexible.

        Raises KafkaError with UNSUPPORTED_VERSION if the class does not have this version.
        """
        key = version, version in cls.flexible if flexible is None else flexible
        plan = cls._plans.get(key)
        if plan is None:
            if version not in cls.versions:
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{cls.__qualname__} has no version {version}")
            plan = cls._plans[key] = Plan(cls, *key)
        return plan

    @classmethod
    def first_version(cls, path: str) -> int:
        """Return the first version that has the field at `path`.

        For example, "topics.topic_id" is a field of a nested struct.
        """
        name, _, rest = path.partition(".")
        field = cls.fields[name]
        item = field if field.item is None else field.item
        if rest and item.struct is not None:
            return item.struct.first_version(rest)
        return max(version_range(field.versions)[0], cls.versions[0])

    @classmethod
    def decode_prefix(cls, buffer: bytes | memoryview, version: int, position: int = 0) -> tuple[Self, int]:
        """Decode the struct that begins at `position`. Return the struct, and the position after its last byte.

        Raises ProtocolError if the struct is malformed.
        """
        return cls.compile(version).decode(memoryview(buffer), position)

    @classmethod
    def decode(cls, buffer: bytes | memoryview, version: int, position: int = 0) -> Self:
        """Decode the struct that begins at `position`.

        Raises ProtocolError if the struct is malformed, or if more bytes follow it in the buffer.
        """
        message, end = cls.decode_prefix(buffer, version, position)
        if end != len(buffer):
            raise ProtocolError(
                f"{cls.__qualname__} in version {version} ends at byte {end}, but the buffer has {len(buffer)} bytes"
            )
        return message

    def encode_parts(self, version: int) -> list[p.Part]:
        """Return the encoded message as a list of parts, without copying the records in it.

        Each value of the type `records` is a separate part.
        """
        out = p.Output()
        self.compile(version).encode(out, self)
        return out.parts()

    def encode(self, version: int) -> bytes:
        """Return the encoded message as one byte string.

        All records in the message must be in memory. For records in a file, use `encode_parts`.
        """
        return b"".join(cast(list[bytes], self.encode_parts(version)))


class Request(Struct):
    """The base class of messages that a client sends to a broker.

    The header of a request has version 2 if the request's version is flexible, and otherwise version 1 (see
    headers.py).
    """

    api_key: ClassVar[ApiKey]

    def __init_subclass__(cls, api_key: ApiKey, versions: str, flexible: str = "none") -> None:
        super().__init_subclass__(versions, flexible)
        cls.api_key = api_key

    @classmethod
    def header_version(cls, version: int) -> int:
        return 2 if version in cls.flexible else 1


class Response(Struct):
    """The base class of messages that a broker sends to a client. A response has the same version as its request.

    Headers have their own versions. A response in a flexible version (KIP-482) has a header of version 1. All
    other responses, and every ApiVersionsResponse, have a header of version 0.
    """

    api_key: ClassVar[ApiKey]
    flexible_header: ClassVar[range]  # the same as `flexible`, except in ApiVersionsResponse

    def __init_subclass__(cls, api_key: ApiKey, versions: str, flexible: str = "none", header: str = "") -> None:
        super().__init_subclass__(versions, flexible)
        cls.api_key, cls.flexible_header = api_key, version_range(header or flexible)

    @classmethod
    def header_version(cls, version: int) -> int:
        return 1 if version in cls.flexible_header else 0
