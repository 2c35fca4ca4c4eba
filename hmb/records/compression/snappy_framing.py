"""Snappy as Kafka's clients write it: the framing of the snappy-java library (after its author, "xerial").

Snappy itself compresses a *block*: a varint with the length it decompresses to, then literals and copies.  The
SnappyOutputStream of snappy-java, which Kafka has used since 0.8, cuts a stream into blocks in a framing of its own
(the later, official framing format is another one)::

    82 53 4E 41 50 50 59 00      magic: 0x82 "SNAPPY" 0
    int32 version = 1            int32 smallest version that can read it = 1         (both big endian)
    repeated: int32 size of the block; the block

Clients in other languages wrote plain blocks without any framing at first.  Both are read here; framing is written.
Neither has a checksum: that is the record batch's business.
"""

from collections.abc import Iterator
from struct import Struct

import cramjam

MAGIC = b"\x82SNAPPY\x00"
HEADER = MAGIC + b"\x00\x00\x00\x01" * 2
BLOCK_SIZE = 1 << 15  # snappy-java's default
_INT32 = Struct(">i")

# The densest element of a block copies 64 bytes and takes 3; a block that claims more than this ratio is lying.
MAX_RATIO = 64


class SnappyError(ValueError):
    """The bytes are neither snappy-java's framing nor a plain block."""


def compress(data: bytes | bytearray | memoryview) -> bytes:
    """The data in snappy-java's framing."""
    parts = [HEADER]
    view = memoryview(data)
    for start in range(0, len(view), BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + BLOCK_SIZE]))
        parts += [_INT32.pack(len(block)), block]
    return b"".join(parts)


def decompressed_size(data: memoryview) -> int:
    """What all blocks together decompress to, by their own claim; claims that no block can keep are refused."""
    return sum(_claimed_size(block) for block in _blocks(data))


def decompress_into(data: memoryview, output: memoryview) -> int:
    """Decompress into `output`, which has room for `decompressed_size` bytes; return the number of bytes written."""
    written = 0
    for block in _blocks(data):
        written += cramjam.snappy.decompress_raw_into(block, output[written:])
    return written


def _blocks(data: memoryview) -> Iterator[memoryview]:
    if data[: len(MAGIC)] != MAGIC:
        if not data:
            raise SnappyError("no snappy data at all")
        yield data
        return
    position = len(HEADER)
    if len(data) < position:
        raise SnappyError("the snappy stream ends inside its header")
    while position < len(data):
        if position + 4 > len(data):
            raise SnappyError(f"the snappy stream ends inside a block size at {position}")
        (size,) = _INT32.unpack_from(data, position)
        position += 4
        if not 0 < size <= len(data) - position:
            raise SnappyError(f"the snappy block at {position} claims {size} bytes of {len(data) - position} left")
        yield data[position : position + size]
        position += size


def _claimed_size(block: memoryview) -> int:
    size = int(cramjam.snappy.decompress_raw_len(block))
    if size > MAX_RATIO * len(block):
        raise SnappyError(f"a snappy block of {len(block)} bytes claims to hold {size}")
    return size
