"""Variable-length integers inside records (KIP-98): small numbers take one byte.

Seven bits a byte, the lowest first; the high bit says that more follow.  Negative numbers would have all their high
bits set, so the sign is first moved to the lowest bit ("zigzag": 0, -1, 1, -2, ... become 0, 1, 2, 3, ...).

`hmb.protocol.primitives` has the same numbers with the checks and messages that fields of a request need.  A record
has six of them, a batch thousands of records: these two work on a plain `bytes` and remember what they encoded.
"""

MAX_SIZE = 10  # a 64-bit number


class VarintError(ValueError):
    """A varint longer than ten bytes."""


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """(the number, the position behind it); IndexError at the end of the data."""
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    result, shift, end = byte & 0x7F, 7, position + MAX_SIZE
    while byte >= 0x80:
        position += 1
        if position == end:
            raise VarintError(f"a varint longer than {MAX_SIZE} bytes ends at {position}")
        byte = data[position]
        result |= (byte & 0x7F) << shift
        shift += 7
    return (result >> 1) ^ -(result & 1), position + 1


class _Varints(dict[int, bytes]):
    """number -> its encoding; remembers the numbers that lengths and deltas mostly are."""

    def __missing__(self, number: int) -> bytes:
        zigzag = (number << 1) ^ (number >> 63)
        encoded = bytearray()
        while zigzag >= 0x80:
            encoded.append(zigzag & 0x7F | 0x80)
            zigzag >>= 7
        encoded.append(zigzag)
        if -64 <= number < 1 << 14:  # the offset deltas of a batch of 256 KB, even of tiny records
            self[number] = bytes(encoded)
        return bytes(encoded)


VARINTS = _Varints()
