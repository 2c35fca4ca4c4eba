"""Variable-length integers (varints) inside records: small numbers take only one byte (KIP-98).

Each byte of a varint contains seven bits of the number. The first byte contains the lowest seven bits. The high
bit of a byte is set if another byte follows. For example, 200 has the two bytes `c8 01`.

In the 64-bit number -1, all bits are set, so -1 would take ten bytes. The *zigzag* rule therefore stores the
sign in the lowest bit: 0, -1, 1, -2, 2 become 0, 1, 2, 3, 4.

Varints in records have the same encoding as varints in requests (`hmb.protocol.primitives`). But a batch can
contain thousands of records, and each record has at least six varints. To be fast, this module reads only from
`bytes`, and stores the encoded bytes of small numbers in a table.
"""

MAX_SIZE = 10  # bytes of the longest varint (64 bits)


class VarintError(ValueError):
    """The error for a varint that has more than ten bytes."""


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Decode the varint at `position`. Return the number, and the position after the varint.

    Raises IndexError if `data` ends inside the varint, and VarintError if the varint has more than ten bytes.
    """
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    result, shift, end = byte & 0x7F, 7, position + MAX_SIZE
    while byte >= 0x80:
        position += 1
        if position == end:
            raise VarintError(f"a varint must have at most {MAX_SIZE} bytes, but one continues at byte {position}")
        byte = data[position]
        result |= (byte & 0x7F) << shift
        shift += 7
    return (result >> 1) ^ -(result & 1), position + 1


class _Varints(dict[int, bytes]):
    """A mapping from a number to its bytes as a varint.

    The mapping stores the bytes of small numbers, because small numbers are frequent.
    """

    def __missing__(self, number: int) -> bytes:
        zigzag = (number << 1) ^ (number >> 63)
        encoded = bytearray()
        while zigzag >= 0x80:
            encoded.append(zigzag & 0x7F | 0x80)
            zigzag >>= 7
        encoded.append(zigzag)
        if -64 <= number < 1 << 14:  # enough for all offset deltas of a batch of 256 KB
            self[number] = bytes(encoded)
        return bytes(encoded)


VARINTS = _Varints()
