"""Snappy compression in the format of the library snappy-java, which Kafka's clients use.

Snappy compresses *blocks* of data. A block begins with the length of its decompressed bytes, as a varint. Since version
0.8, Kafka's Java clients have used the class SnappyOutputStream of snappy-java. This class divides the data into
blocks. The class writes a header before the first block, and a size before each block. (Snappy's official format for
several blocks is newer and different.) The format of snappy-java is:
    82 53 4E 41 50 50 59 00      magic: 0x82 "SNAPPY" 0
    int32 version = 1            int32 oldest compatible version = 1            (both big endian)
    repeated: int32 size of the block; the block

Early clients in languages other than Java wrote a single Snappy block and nothing else. This module can read such a
block and the format of snappy-java. It writes only the format of snappy-java. Neither format contains a checksum,
because the record batch already contains a CRC.

For example, `compress` divides 100,000 bytes into 4 blocks. Each block contains at most 32,768 bytes before
compression.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

import cramjam

MAGIC = b"\x82SNAPPY\x00"
HEADER = MAGIC + b"\x00\x00\x00\x01" * 2
BLOCK_SIZE = 1 << 15  # bytes, as in snappy-java
_INT32 = Struct(">i")

# A compressed block consists of plain bytes and copy commands. A copy command has at least one byte, and produces at
# most 64 bytes. So a block is invalid if it declares a decompressed size of more than 64 times its own size.
MAX_RATIO = 64


class SnappyError(ValueError):
    """The error for bytes that are neither in the format of snappy-java nor a single block of Snappy data."""


def compress(data: bytes | bytearray | memoryview) -> bytes:
    """Compress data, and return it in the format of snappy-java."""
    parts = [HEADER]
    view = memoryview(data)
    for start in range(0, len(view), BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + BLOCK_SIZE]))
        parts += [_INT32.pack(len(block)), block]
    return b"".join(parts)


def decompressed_size(data: memoryview) -> int:
    """Return the sum of the decompressed sizes (bytes) that the blocks declare.

    Raises SnappyError if the data is malformed, or if a declared size is impossible.
    """
    return sum(_declared_size(block) for block in _blocks(data))


def decompress_into(data: memoryview, output: memoryview) -> int:
    """Decompress into `output`, and return the number of bytes written.

    `output` must have at least the size that `decompressed_size` returns.
    """
    written = 0
    for block in _blocks(data):
        written += cramjam.snappy.decompress_raw_into(block, output[written:])
    return written


def _blocks(data: memoryview) -> Iterator[memoryview]:
    if data[: len(MAGIC)] != MAGIC:
        if not data:
            raise SnappyError("there is no snappy data")
        yield data
        return
    position = len(HEADER)
    if len(data) < position:
        raise SnappyError("the snappy stream ends inside its header")
    while position < len(data):
        if position + 4 > len(data):
            raise SnappyError(f"the snappy stream ends inside the size field of the block at byte {position}")
        (size,) = _INT32.unpack_from(data, position)
        position += 4
        left = len(data) - position
        if not 0 < size <= left:
            raise SnappyError(f"the snappy block at byte {position} has size {size}, but only {left} bytes follow")
        yield data[position : position + size]
        position += size


def _declared_size(block: memoryview) -> int:
    size = int(cramjam.snappy.decompress_raw_len(block))
    if size > MAX_RATIO * len(block):
        raise SnappyError(f"a snappy block of {len(block)} bytes cannot decompress to {size} bytes")
    return size
