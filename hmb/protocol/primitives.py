"""The alphabet of the wire: numbers, strings, byte strings, arrays.

Everything Kafka sends is built from few types, big-endian, with nothing in between: no type marks, no names, no
padding.  The reader must know the version's layout to know what the next byte means.  Here each type is a `FieldCodec`,
a pair of functions, so that writing and reading a type stand side by side.

    int8 .. int64, uint16, uint32    1, 2, 4, 8 bytes, two's complement
    bool                             1 byte, 0 is false
    float64                          8 bytes, IEEE 754
    uuid                             16 bytes
    string                           int16 length, UTF-8; length -1 is null
    bytes, records                   int32 length, bytes; length -1 is null
    array                            int32 count, items; count -1 is null

Flexible versions (KIP-482) write the lengths more densely: *compact* strings, bytes and arrays begin with an unsigned
varint of length + 1, and 0 is null.  A varint holds seven bits a byte, the low ones first; the top bit says that
another byte follows.  Signed varints are zigzag coded first (0, -1, 1, -2, ... become 0, 1, 2, 3, ...) so that small
negative numbers stay short.

- A decoder takes `(buffer, position)` and returns `(value, next position)`.
- A length is compared with what is left in the buffer before anything is allocated: four bytes cannot claim 2 GB.
- A string has at most LONGEST_STRING bytes, whichever way its length is written.  A compact length could say more, but
  then a message could contain a string that no older version, and no record of a coordinator, can hold.
- Malformed bytes raise one of `MALFORMED`; the schema, which knows the field, makes it a ProtocolError.
- What takes more memory than it has bytes on the wire is paid for: see allowance.py.
- `records` are never copied: reading gives a view on the buffer, writing leaves the value out of the small bytes
  (`Output.parts`), and it may be a piece of a file that only the operating system will ever read.

Source: Kafka protocol guide "Protocol Primitive Types", KIP-482; varints as in Protocol Buffers.
"""

import struct
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias
from uuid import UUID

from hmb.protocol.allowance import ALLOWANCE, ITEM_SIZE, SMALL


class RecordsInFile(Protocol):
    """A `records` value that lies in a file: the length is written here, the transport sends the rest (sendfile)."""

    @property
    def size(self) -> int: ...


Part: TypeAlias = bytes | memoryview | RecordsInFile  # of what goes on the wire

MALFORMED = (ValueError, IndexError, struct.error)
UNWRITABLE = (TypeError, AttributeError, OverflowError, struct.error)  # a value of another type, or out of range
LONGEST_STRING = 2**15 - 1  # bytes


class Output(bytearray):
    """Bytes being written, and the `records` that belong in between (position, value), which are not copied."""

    def __init__(self) -> None:
        super().__init__()
        self.spliced: list[tuple[int, Part]] = []

    def parts(self) -> list[Part]:
        """All that was written, in order: small fields joined into bytes, records as they were given."""
        parts: list[Part] = []
        start = 0
        for position, records in self.spliced:
            parts += bytes(self[start:position]), records
            start = position
        if start < len(self) or not parts:
            parts.append(bytes(self[start:]))
        return parts


def part_size(part: Part) -> int:
    """How many bytes a part will take on the wire."""
    return len(part) if isinstance(part, bytes | bytearray | memoryview) else part.size


Encode: TypeAlias = Callable[[Output, Any], None]
Decode: TypeAlias = Callable[[memoryview, int], tuple[Any, int]]


class FieldCodec(NamedTuple):
    """How one type is written and read."""

    encode: Encode
    decode: Decode


def _fixed(layout: str) -> FieldCodec:
    """A number of fixed width, by its letter in the struct module."""
    number = struct.Struct(">" + layout)
    pack, unpack_from, size = number.pack, number.unpack_from, number.size

    def encode(out: Output, value: Any) -> None:
        out += pack(value)

    def decode(buffer: memoryview, position: int) -> tuple[Any, int]:
        return unpack_from(buffer, position)[0], position + size

    return FieldCodec(encode, decode)


INT8, INT16, INT32, INT64 = _fixed("b"), _fixed("h"), _fixed("i"), _fixed("q")
UINT16, UINT32, BOOL, FLOAT64 = _fixed("H"), _fixed("I"), _fixed("?"), _fixed("d")


# Varints


def encode_uvarint(out: Output, value: int) -> None:
    """Seven bits a byte, low bits first, top bit set on all bytes but the last."""
    if value < 0:
        raise ValueError(f"{value} is negative")
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _uvarint_of(bits: int) -> Decode:
    def decode(buffer: memoryview, position: int) -> tuple[int, int]:
        byte = buffer[position]
        if byte < 0x80:  # nearly always: a short length
            return byte, position + 1
        value, shift = byte & 0x7F, 7
        while byte >= 0x80:
            if shift >= bits:
                raise ValueError(f"varint has more than {bits} bits")
            position += 1
            byte = buffer[position]
            value |= (byte & 0x7F) << shift
            shift += 7
        if value >> bits:
            raise ValueError(f"varint has more than {bits} bits")
        return value, position + 1

    return decode


def _zigzag(bits: int) -> FieldCodec:
    decode_unsigned = _uvarint_of(bits)
    low = -(1 << bits - 1)

    def encode(out: Output, value: int) -> None:
        if not low <= value < -low:
            raise ValueError(f"{value} does not fit in {bits} bits")
        encode_uvarint(out, value << 1 if value >= 0 else ~(value << 1))

    def decode(buffer: memoryview, position: int) -> tuple[int, int]:
        value, position = decode_unsigned(buffer, position)
        return value >> 1 ^ -(value & 1), position

    return FieldCodec(encode, decode)


decode_uvarint = _uvarint_of(32)
UVARINT = FieldCodec(encode_uvarint, decode_uvarint)
VARINT, VARLONG = _zigzag(32), _zigzag(64)


# Lengths: of strings, of bytes, of arrays.  -1 is null.


def _encode_compact_length(out: Output, length: int) -> None:
    if length < 0x7F:  # nearly always: no need for a call
        out.append(length + 1)
    else:
        encode_uvarint(out, length + 1)


def _decode_compact_length(buffer: memoryview, position: int) -> tuple[int, int]:
    byte = buffer[position]
    if byte < 0x80:
        return byte - 1, position + 1
    length, position = decode_uvarint(buffer, position)
    return length - 1, position


COMPACT_LENGTH = FieldCodec(_encode_compact_length, _decode_compact_length)


def check_length(length: int, left: int, nullable: bool) -> None:
    """Complain about a length that is not followed by as many bytes; -1 is fine where null is."""
    if length > left:
        raise ValueError(f"length {length}, but {left} bytes are left")
    if length < -1:
        raise ValueError(f"length {length} is negative")
    if length == -1 and not nullable:
        raise ValueError("null is not allowed here")


# Types that begin with a length


def _or_null(encode_length: Encode, encode: Encode) -> Encode:
    def encode_nullable(out: Output, value: Any) -> None:
        if value is None:
            encode_length(out, -1)
        else:
            encode(out, value)

    return encode_nullable


def string(length: FieldCodec, nullable: bool) -> FieldCodec:
    """Text in UTF-8; its length is counted in bytes and is at most LONGEST_STRING."""
    encode_length, decode_length = length

    def encode(out: Output, value: str) -> None:
        data = value.encode()
        if len(data) > LONGEST_STRING:
            raise OverflowError(f"string of {len(data)} bytes, at most {LONGEST_STRING} are allowed")
        encode_length(out, len(data))
        out += data

    def decode(buffer: memoryview, position: int) -> tuple[str | None, int]:
        size, position = decode_length(buffer, position)
        check_length(size, len(buffer) - position, nullable)
        if size < 0:
            return None, position
        if size > LONGEST_STRING:
            raise ValueError(f"string of {size} bytes, at most {LONGEST_STRING} are allowed")
        text = str(buffer[position : position + size], "utf-8")
        if size > SMALL:
            ALLOWANCE.spend(size if text.isascii() else 4 * size)
        return text, position + size

    return FieldCodec(_or_null(encode_length, encode) if nullable else encode, decode)


def bytestring(length: FieldCodec, nullable: bool) -> FieldCodec:
    """Bytes of a client's own, small and copied."""
    encode_length, decode_length = length

    def encode(out: Output, value: bytes) -> None:
        encode_length(out, len(value))
        out += value

    def decode(buffer: memoryview, position: int) -> tuple[bytes | None, int]:
        size, position = decode_length(buffer, position)
        check_length(size, len(buffer) - position, nullable)
        if size < 0:
            return None, position
        if size > SMALL:
            ALLOWANCE.spend(size)
        return bytes(buffer[position : position + size]), position + size

    return FieldCodec(_or_null(encode_length, encode) if nullable else encode, decode)


def records(length: FieldCodec, nullable: bool) -> FieldCodec:
    """Record batches: opaque here, and never copied."""
    encode_length, decode_length = length

    def encode(out: Output, value: Part) -> None:
        size = part_size(value)
        encode_length(out, size)
        if size:
            out.spliced.append((len(out), value))

    def decode(buffer: memoryview, position: int) -> tuple[memoryview | None, int]:
        size, position = decode_length(buffer, position)
        check_length(size, len(buffer) - position, nullable)
        if size < 0:
            return None, position
        return buffer[position : position + size], position + size

    return FieldCodec(_or_null(encode_length, encode) if nullable else encode, decode)


def array(length: FieldCodec, item: FieldCodec, nullable: bool) -> FieldCodec:
    """A count, then the items; every item takes a byte at least, so a count is checked like a length."""
    encode_length, decode_length = length
    encode_item, decode_item = item

    def encode(out: Output, value: list[Any]) -> None:
        encode_length(out, len(value))
        for each in value:
            encode_item(out, each)

    def decode(buffer: memoryview, position: int) -> tuple[list[Any] | None, int]:
        count, position = decode_length(buffer, position)
        check_length(count, len(buffer) - position, nullable)
        if count < 0:
            return None, position
        if count > 1:
            ALLOWANCE.spend(count * ITEM_SIZE)
        items: list[Any] = []
        for _ in range(count):
            each, position = decode_item(buffer, position)
            items.append(each)
        return items, position

    return FieldCodec(_or_null(encode_length, encode) if nullable else encode, decode)


# The rest


def optional(item: FieldCodec, *, tagged: bool = False) -> FieldCodec:
    """A struct that may be null: one byte in front, -1 for null (0 in a tagged field), 1 for one that follows."""
    mark, null = (UVARINT, 0) if tagged else (INT8, -1)

    def encode(out: Output, value: Any) -> None:
        mark.encode(out, null if value is None else 1)
        if value is not None:
            item.encode(out, value)

    def decode(buffer: memoryview, position: int) -> tuple[Any, int]:
        present, position = mark.decode(buffer, position)
        return item.decode(buffer, position) if present > null else (None, position)

    return FieldCodec(encode, decode)


def _encode_uuid(out: Output, value: UUID) -> None:
    out += value.bytes


def _decode_uuid(buffer: memoryview, position: int) -> tuple[UUID, int]:
    end = position + 16
    return UUID(bytes=bytes(buffer[position:end])), end  # fewer than 16 bytes: ValueError


# By the names that Kafka's definitions use

SIZED = {"string": string, "bytes": bytestring, "records": records}
FIXED = {
    "bool": BOOL,
    "int8": INT8,
    "int16": INT16,
    "int32": INT32,
    "int64": INT64,
    "uint16": UINT16,
    "uint32": UINT32,
    "float64": FLOAT64,
    "uuid": FieldCodec(_encode_uuid, _decode_uuid),
}
