"""Fields: how a message class declares its fields, with one line for each field.

Each line declares the type of one field. It can also set the versions that have the field, and a default value:
    transactional_id: str | None = t.string("3+", nullable="3+", default=None)
    topic_data: list[TopicProduceData] = t.array(TopicProduceData)

In a Produce request, `transactional_id` is a string that exists from version 3 on. The string may be null, and null is
its default value. `topic_data` is an array of structs, which all versions have.

A function such as `t.int16()` returns a `Field`. The method `Field.codec` returns the field's codec for one version of
the message: a function that encodes the value, and a function that decodes it.

For example, the codec of `t.int16()` encodes the value 5 as `00 05` in all versions. The codec of `t.string()` encodes
"a" as `00 01 61`: the length 1 in two bytes, and then the text. In flexible versions, it encodes "a" as `02 61`: the
length plus one as a varint, and then the text.

Source: Kafka's generator of message classes (clients/src/main/resources/common/message/README.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from hmb.protocol import primitives as p

if TYPE_CHECKING:  # A real import would be circular: schema.py imports this module.
    from hmb.protocol.schema import Struct


@cache
def version_range(text: str) -> range:
    """Return the range of versions that `text` describes: "3", "0-12", "3+" (3 and all later ones) or "none"."""
    if text == "none":
        return range(0)
    first, _, last = text.rstrip("+").partition("-")
    return range(int(first), 2**15 if text.endswith("+") else int(last or first) + 1)


@dataclass
class Field:
    """The declaration of one field in a message class. It never changes."""

    kind: str  # Kafka's name of the type, or "array", or "struct"
    versions: str = "0+"
    _: KW_ONLY
    nullable: str = "none"
    default: Any  # the default value, or a class (`list` or a struct) that creates a new default value for each message
    ignorable: bool = False
    tag: int | None = None  # the number of a tagged field; None for any other field
    compact: bool = True  # whether flexible versions of the message (KIP-482) store the value's length as a varint
    item: Field | None = None  # the type of an array's items
    struct: type[Struct] | None = None

    def default_value(self) -> Any:
        return self.default() if isinstance(self.default, type) else self.default

    def length(self, flexible: bool) -> p.FieldCodec:
        """Return the codec of the length that is written before a string, an array or other bytes of variable size."""
        if flexible and self.compact:
            return p.COMPACT_LENGTH
        return p.INT16 if self.kind == "string" else p.INT32

    def codec(self, version: int, flexible: bool) -> p.FieldCodec:
        """Return the codec of the field's value in one version of the message."""
        nullable = version in version_range(self.nullable)
        if self.struct is not None:
            plan = self.struct.compile(version, flexible)
            codec = p.FieldCodec(plan.encode, plan.decode)
            return p.optional(codec, tagged=self.tag is not None) if nullable else codec
        if self.item is not None:
            return p.array(self.length(flexible), self.item.codec(version, flexible), nullable)
        sized = p.SIZED.get(self.kind)
        return sized(self.length(flexible), nullable) if sized else p.FIXED[self.kind]


# The following functions return a Field. But their declared return type is Any, because a type checker would otherwise
# reject `name: str = t.string()`.
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
    """Declare a field that is a struct. Its default value is a struct in which all fields have their default values."""
    return Field("struct", versions, struct=struct, **{"default": struct, **options})


def array(item: type[Struct] | Maker, versions: str = "0+", **options: Any) -> Any:
    """Declare an array field for structs (`t.array(Topic)`) or primitive values (`t.array(t.int32)`)."""
    each = struct(item) if isinstance(item, type) else item()
    return Field("array", versions, item=each, **{"default": list, **options})
