"""Snappy as Kafka's clients write it: in the framing of the library snappy-java.

Snappy compresses a *block*. A block is a varint with the length of the decompressed bytes, followed by literals and
copies. Kafka has used the SnappyOutputStream of snappy-java since 0.8. This class divides a stream into blocks in a
framing of its own. The framing differs from the later official one::

    82 53 4E 41 50 50 59 00      magic: 0x82 "SNAPPY" 0
    int32 version = 1            int32 smallest version of a reader = 1         (both big endian)
    repeated: int32 size of the block; the block

Early clients in other languages wrote a single block without any framing. This module reads both forms, and writes the
framing. Neither form has a checksum, because a record batch has its own.

For example, 100,000 bytes become 4 blocks of at most 32,768 decompressed bytes each.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

import cramjam

MAGIC = b"\x82SNAPPY\x00"
HEADER = MAGIC + b"\x00\x00\x00\x01" * 2
BLOCK_SIZE = 1 << 15  # bytes, as in snappy-java
_INT32 = Struct(">i")

# An element of a block takes 3 bytes and copies at most 64 bytes. So a block that declares a larger ratio is invalid.
MAX_RATIO = 64


class SnappyError(ValueError):
    """The bytes are neither in snappy-java's framing nor a plain block."""


def compress(data: bytes | bytearray | memoryview) -> bytes:
    """Return the compressed data in snappy-java's framing."""
    parts = [HEADER]
    view = memoryview(data)
    for start in range(0, len(view), BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + BLOCK_SIZE]))
        parts += [_INT32.pack(len(block)), block]
    return b"".join(parts)


def decompressed_size(data: memoryview) -> int:
    """Return the decompressed size (bytes) that the blocks declare. Raises SnappyError for an impossible size."""
    return sum(_declared_size(block) for block in _blocks(data))


def decompress_into(data: memoryview, output: memoryview) -> int:
    """Decompress into `output`, which has at least `decompressed_size` bytes. Return the number of bytes written."""
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
            raise SnappyError(f"the snappy stream ends inside a block size at {position}")
        (size,) = _INT32.unpack_from(data, position)
        position += 4
        left = len(data) - position
        if not 0 < size <= left:
            raise SnappyError(f"the snappy block at {position} has size {size}, but only {left} bytes follow")
        yield data[position : position + size]
        position += size


def _declared_size(block: memoryview) -> int:
    size = int(cramjam.snappy.decompress_raw_len(block))
    if size > MAX_RATIO * len(block):
        raise SnappyError(f"a snappy block of {len(block)} bytes cannot decompress to {size} bytes")
    return size
