"""Tagged fields: optional fields at the end of every struct of a flexible version (KIP-482).

Normally, a new field needs a new version of its message. A tagged field does not need one. It begins with its
number (the tag) and its size, so a program that does not know this tag can skip the field. The tagged fields of
a struct have this layout:
    uvarint  number of tagged fields
    each:    uvarint tag, uvarint size in bytes, the value

The encoder writes the tagged fields in ascending order of their tags. It omits a field that has its default value. So
most structs have no tagged fields, and end with a single zero byte. For example, if the field
`finalized_features_epoch` (tag 1) of an ApiVersions response has the value 5, the response ends with these bytes:
    01  01  08  00 00 00 00 00 00 00 05        one tagged field, with the tag 1, the size 8 and the value 5

If the decoder does not know the tag of a field, it stores the field's bytes in the struct's `unknown_tagged_fields`.
When the struct is encoded again, the encoder writes these bytes unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from hmb.protocol import primitives as p
from hmb.protocol.allowance import ALLOWANCE, ITEM_SIZE

_VALUE = p.bytestring(p.UVARINT, nullable=False)  # the size of a tagged field, followed by its bytes


class TaggedField(NamedTuple):
    """A tagged field that a message class declares."""

    tag: int
    name: str
    codec: p.FieldCodec
    default: Any


class TaggedFields:
    """Encodes and decodes the tagged fields of a struct in one version."""

    def __init__(self, fields: Sequence[TaggedField]) -> None:
        self.by_tag = {field.tag: field for field in sorted(fields)}

    def decode(self, values: dict[str, Any], buffer: memoryview, position: int) -> int:
        """Decode the tagged fields that begin at `position`, and store them in `values`.

        Return the position after the tagged fields. Raises one of the exceptions in `primitives.MALFORMED` if the bytes
        are malformed, for example if a tag occurs twice.
        """
        count, position = p.decode_uvarint(buffer, position)
        ALLOWANCE.spend(min(count, len(buffer) - position) * ITEM_SIZE)
        seen: set[int] = set()
        for _ in range(count):
            tag, position = p.decode_uvarint(buffer, position)
            data, end = _VALUE.decode(buffer, position)
            if tag in seen:
                raise ValueError(f"tag {tag} occurs twice")
            seen.add(tag)
            if tag in self.by_tag:
                _, name, codec, _ = self.by_tag[tag]
                values[name], position = codec.decode(buffer[:end], end - len(data))
                if position != end:
                    size = len(data) - end + position
                    raise ValueError(f"tag {tag} has length {len(data)}, but the value of {name} has {size} bytes")
            else:
                values.setdefault("unknown_tagged_fields", {})[tag] = bytes(data)
            position = end
        return position

    def encode(self, out: p.Output, values: dict[str, Any]) -> None:
        """Append to `out` the tagged fields that differ from their defaults, and the fields with unknown tags."""
        tags = dict(values.get("unknown_tagged_fields", ()))
        for tag, name, codec, default in self.by_tag.values():
            if values[name] != default:
                data = p.Output()
                codec.encode(data, values[name])
                tags[tag] = b"".join(cast(list[bytes], data.parts()))
        p.encode_uvarint(out, len(tags))
        for tag in sorted(tags):
            p.encode_uvarint(out, tag)
            _VALUE.encode(out, tags[tag])
