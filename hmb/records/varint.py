"""Variable-length integers inside records (KIP-98): small numbers take one byte.

Each byte holds seven bits of the number, the lowest seven first. The high bit of a byte is set if another byte follows.
All high bits of a small negative number are set, so it would take ten bytes. *Zigzag* therefore moves the sign to the
lowest bit: 0, -1, 1, -2 become 0, 1, 2, 3. For example, 100 becomes 200 in zigzag, and is encoded as `c8 01`.

`hmb.protocol.primitives` has the same encoding, with the checks and messages that the fields of requests need. A record
has six varints, and a batch has thousands of records. This module is therefore optimized for speed: it reads from
`bytes`, and stores the encodings of small numbers.
"""

MAX_SIZE = 10  # bytes of a 64-bit number


class VarintError(ValueError):
    """A varint has more than ten bytes."""


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the number at `position`, and the position after it.

    Raises IndexError if the data end inside the number, and VarintError if the number has more than ten bytes.
    """
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
    """A mapping from a number to its encoding. It stores the encodings of common lengths and deltas."""

    def __missing__(self, number: int) -> bytes:
        zigzag = (number << 1) ^ (number >> 63)
        encoded = bytearray()
        while zigzag >= 0x80:
            encoded.append(zigzag & 0x7F | 0x80)
            zigzag >>= 7
        encoded.append(zigzag)
        if -64 <= number < 1 << 14:  # The table covers all offset deltas of a batch of 256 KB.
            self[number] = bytes(encoded)
        return bytes(encoded)


VARINTS = _Varints()
