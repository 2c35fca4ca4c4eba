"""The primitive types of Kafka's protocol: numbers, strings, byte strings and arrays.

The fields of all messages have a few primitive types. Numbers are big-endian, and there are no unused bytes between
fields. The bytes of a message do not contain the types or the names of fields. So a reader must know the layout of a
message's version to decode the bytes.

Each primitive type has a `FieldCodec`, which contains one function that encodes a value and one function that decodes a
value. The types have these encodings:
    int8 .. int64, uint16, uint32    1, 2, 4, 8 bytes, two's complement
    bool                             1 byte, 0 is false
    float64                          8 bytes, IEEE 754
    uuid                             16 bytes
    string                           int16 length, UTF-8; length -1 is null
    bytes, records                   int32 length, bytes; length -1 is null
    array                            int32 count, items; count -1 is null

Newer, *flexible* versions of messages (KIP-482) encode lengths in fewer bytes. A *compact* string, byte string or array
begins with its length + 1 as an unsigned varint. The value 0 stands for null. For example, the string "ab" is `00 02 61
62`, or `03 61 62` in the compact form.

A varint is an integer of one or more bytes. Each byte contains seven bits of the number, and the first byte contains
the lowest bits. The top bit of a byte is set if another byte follows.

Before a signed number is encoded as a varint, the zigzag rule converts the number: 0, -1, 1, -2 become 0, 1, 2, 3. So a
small negative number also takes one byte.

The codecs of the primitive types follow these rules:

- A decoder takes a buffer and the position of an encoded value. It returns the value, and the position
  after the encoded value.

- An encoded string, byte string or array begins with its length. If the length is greater than the number
  of bytes that remain in the buffer, the decoder raises ValueError. It does so before it allocates memory,
  because a false length can be up to 2 GB.

- A string has at most LONGEST_STRING bytes (32,767), because the older encoding stores the length as an
  int16. The newer encoding has the same limit, although it could store a greater length.

- If the bytes are malformed, a decoder raises one of the exceptions in `MALFORMED`. The module `schema`
  catches the exception and raises a ProtocolError, which also contains the field's name.

- To limit the memory for one message, decoders of large values call `ALLOWANCE.spend` (see `allowance`). For a
  byte string or an array, they call it before decoding. For a string, they call it after decoding, because
  non-ASCII characters can take more memory.

- A value of the type `records` can be large, so the codec does not copy it. The decoder returns a
  memoryview of the buffer. The encoder keeps the value separate from the other bytes of the message
  (`Output.parts`).

Source: Kafka protocol guide "Protocol Primitive Types", KIP-482; varints as in Protocol Buffers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias
from uuid import UUID

from hmb.protocol.allowance import ALLOWANCE, ITEM_SIZE, SMALL


class RecordsInFile(Protocol):
    """A value of the type `records` whose bytes are in a file.

    The encoder writes only the length of the value. When the broker sends the message, the operating system copies the
    bytes from the file to the socket (sendfile).
    """

    @property
    def size(self) -> int: ...


Part: TypeAlias = bytes | memoryview | RecordsInFile  # several consecutive bytes of an encoded message

MALFORMED = (ValueError, IndexError, struct.error)
UNWRITABLE = (TypeError, AttributeError, OverflowError, struct.error)  # raised for a value of a wrong type or size
LONGEST_STRING = 2**15 - 1  # bytes


class Output(bytearray):
    """All bytes of an encoded message except the values of its `records` fields.

    To avoid copies, the encoder stores these values in the list `spliced`, as pairs (position, value). A value with
    the position 20 belongs after the first 20 bytes of this object.
    """

    def __init__(self) -> None:
        super().__init__()
        self.spliced: list[tuple[int, Part]] = []

    def parts(self) -> list[Part]:
        """Return the encoded message in parts.

        Each `records` value is one part, and the bytes between two such values are one part.
        """
        parts: list[Part] = []
        start = 0
        for position, records in self.spliced:
            parts += bytes(self[start:position]), records
            start = position
        if start < len(self) or not parts:
            parts.append(bytes(self[start:]))
        return parts


BYTES_LIKE = (bytes, bytearray, memoryview)  # a tuple: `bytes | bytearray` would make a new union at each call


def part_size(part: Part) -> int:
    """Return the size (bytes) of a part of an encoded message. A part is bytes in memory, or records in a file."""
    return len(part) if isinstance(part, BYTES_LIKE) else part.size


Encode: TypeAlias = Callable[[Output, Any], None]
Decode: TypeAlias = Callable[[memoryview, int], tuple[Any, int]]


class FieldCodec(NamedTuple):
    """The two functions that encode and decode the values of one type."""

    encode: Encode
    decode: Decode


def _fixed(layout: str) -> FieldCodec:
    """Return the codec of a number type with a fixed size. `layout` is the type's letter in Python's struct module."""
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
    """Append an unsigned varint to `out`.

    Each byte contains seven bits of `value`, and the first byte contains the lowest bits. The top bit is set on all
    bytes except the last one.
    """
    if value < 0:
        raise ValueError(f"{value} is negative")
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _uvarint_of(bits: int) -> Decode:
    def decode(buffer: memoryview, position: int) -> tuple[int, int]:
        byte = buffer[position]
        if byte < 0x80:  # The faster path: most varints have one byte.
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


# Each encoded string, byte string and array begins with a length: the number of its bytes, or of the array's items. The
# length -1 stands for null.


def _encode_compact_length(out: Output, length: int) -> None:
    if length < 0x7F:  # For a short length, the faster path calls no function.
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
    """Check the length that precedes a value.

    Raises ValueError if `length` is greater than `left`, the number of bytes that remain in the buffer. Also raises
    ValueError if `length` is below -1, or if `length` is -1 (null) and the field is not `nullable`.
    """
    if length > left:
        raise ValueError(f"the field's length is {length}, but only {left} bytes are left")
    if length < -1:
        raise ValueError(f"the field's length is {length}, which is negative")
    if length == -1 and not nullable:
        raise ValueError("null is not allowed in this field")


# The following functions return codecs for types whose encoded values begin with a length, for example strings.


def _or_null(encode_length: Encode, encode: Encode) -> Encode:
    def encode_nullable(out: Output, value: Any) -> None:
        if value is None:
            encode_length(out, -1)
        else:
            encode(out, value)

    return encode_nullable


def string(length: FieldCodec, nullable: bool) -> FieldCodec:
    """Return the codec of a string.

    The codec encodes a string as its length in bytes (at most LONGEST_STRING), followed by its UTF-8 bytes.
    """
    encode_length, decode_length = length

    def encode(out: Output, value: str) -> None:
        data = value.encode()
        if len(data) > LONGEST_STRING:
            raise OverflowError(f"string of {len(data)} bytes, at most {LONGEST_STRING} are allowed")
        encode_length(out, len(data))
        out += data

    def decode(buffer: memoryview, position: int) -> tuple[str | None, int]:
        size, position = decode_length(buffer, position)
        if not 0 <= size <= len(buffer) - position:
            check_length(size, len(buffer) - position, nullable)
            return None, position
        if size > LONGEST_STRING:
            raise ValueError(f"string of {size} bytes, at most {LONGEST_STRING} are allowed")
        text = str(buffer[position : position + size], "utf-8")
        if size > SMALL:
            ALLOWANCE.spend(size if text.isascii() else 4 * size)
        return text, position + size

    return FieldCodec(_or_null(encode_length, encode) if nullable else encode, decode)


def bytestring(length: FieldCodec, nullable: bool) -> FieldCodec:
    """Return the codec of a byte string. The decoder returns a copy of the bytes."""
    encode_length, decode_length = length

    def encode(out: Output, value: bytes) -> None:
        encode_length(out, len(value))
        out += value

    def decode(buffer: memoryview, position: int) -> tuple[bytes | None, int]:
        size, position = decode_length(buffer, position)
        if not 0 <= size <= len(buffer) - position:
            check_length(size, len(buffer) - position, nullable)
            return None, position
        if size > SMALL:
            ALLOWANCE.spend(size)
        return bytes(buffer[position : position + size]), position + size

    return FieldCodec(_or_null(encode_length, encode) if nullable else encode, decode)


def records(length: FieldCodec, nullable: bool) -> FieldCodec:
    """Return the codec of the type `records`. This codec does not decode the records, and does not copy their bytes."""
    encode_length, decode_length = length

    def encode(out: Output, value: Part) -> None:
        size = part_size(value)
        encode_length(out, size)
        if size:
            out.spliced.append((len(out), value))

    def decode(buffer: memoryview, position: int) -> tuple[memoryview | None, int]:
        size, position = decode_length(buffer, position)
        if not 0 <= size <= len(buffer) - position:
            check_length(size, len(buffer) - position, nullable)
            return None, position
        return buffer[position : position + size], position + size

    return FieldCodec(_or_null(encode_length, encode) if nullable else encode, decode)


def array(length: FieldCodec, item: FieldCodec, nullable: bool) -> FieldCodec:
    """Return the codec of an array.

    Each item takes at least one byte. So the decoder raises ValueError if the number of items is greater than the
    number of bytes that remain in the buffer.
    """
    encode_length, decode_length = length
    encode_item, decode_item = item

    def encode(out: Output, value: list[Any]) -> None:
        encode_length(out, len(value))
        for each in value:
            encode_item(out, each)

    def decode(buffer: memoryview, position: int) -> tuple[list[Any] | None, int]:
        count, position = decode_length(buffer, position)
        if not 0 <= count <= len(buffer) - position:
            check_length(count, len(buffer) - position, nullable)
            return None, position
        if count > 1:
            ALLOWANCE.spend(count * ITEM_SIZE)
        items: list[Any] = []
        for _ in range(count):
            each, position = decode_item(buffer, position)
            items.append(each)
        return items, position

    return FieldCodec(_or_null(encode_length, encode) if nullable else encode, decode)


# The following codecs are for structs that may be null, and for UUIDs.


def optional(item: FieldCodec, *, tagged: bool = False) -> FieldCodec:
    """Return the codec of a struct that may be null.

    The encoding begins with one byte. If this byte is 1, the struct follows. For null, the byte is 0 if
    `tagged` is true, and -1 if `tagged` is false.
    """
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
    return UUID(bytes=bytes(buffer[position:end])), end  # UUID raises ValueError for fewer than 16 bytes.


# An encoded string begins with its length: an int16 in older message versions, and a varint in newer ones. The length
# of bytes and records also has two forms. So each function takes a codec for the length.
SIZED = {"string": string, "bytes": bytestring, "records": records}
# The encoded values of each of these types always have the same size. For example, an int32 has 4 bytes. So no length
# comes before the value.
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
