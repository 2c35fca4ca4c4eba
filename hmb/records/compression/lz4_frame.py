"""The LZ4 frame format, in the variants that Kafka's clients write (KIP-57).

LZ4 divides the data into *blocks* and compresses each block. A block does not contain its own length. A *frame*
adds a header before the first block, and a length before each block ([...] is optional):
    magic 04 22 4D 18
    FLG   1 byte    bits 7-6: version (01); bit 5: independent blocks; bit 4: block checksums exist;
                    bit 3: content size exists; bit 2: content checksum exists; bit 0: dictionary id exists
    BD    1 byte    bits 6-4: largest decompressed block (4 = 64 KB, 5 = 256 KB, 6 = 1 MB, 7 = 4 MB)
    [content size   8 bytes]
    [dictionary id  4 bytes]
    HC    1 byte    second byte of the xxHash-32 of the bytes from FLG to the dictionary id
    blocks          size (4 bytes, little endian; highest bit is 1: not compressed), block, [checksum 4 bytes]
    end             4 bytes of zero, [content checksum 4 bytes]

LZ4 causes three problems in Kafka:

- Clients before Kafka 0.10 write and expect a wrong header checksum (HC), which also covers the first 4
  bytes of the frame (KAFKA-3160). These clients use the message format v0. In this format, HMB therefore
  writes the wrong HC, and does not check the HC.

- By default, LZ4 libraries write frames with linked blocks, and set bit 5 of the header byte FLG to 0. Kafka's
  Java client rejects such frames. This module therefore builds frames in Python, and uses a library only to
  compress blocks.

- A frame can omit the size of the decompressed data. A reader of such a frame does not know how much memory
  to allocate. The function `decompressed_bound` therefore computes an upper bound for this size from the
  blocks.

The header of a frame contains the byte BD. It limits the decompressed size of each block. For example, BD allows at
most 64 KB for each block, and the frame has 3 blocks. The frame therefore decompresses to at most 192 KB.

Source: https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

import cramjam

FRAME_MAGIC = b"\x04\x22\x4d\x18"
END_MARK = bytes(4)
BLOCK_SIZE = 1 << 16  # bytes, as in Kafka's clients
DEFAULT_LEVEL = 9  # Kafka's default. HMB uses the fast compressor for this level, and a slower one for all others.
MAX_RATIO = 255  # One byte of a block becomes at most 255 decompressed bytes.
_FLG_VERSION_1, _FLG_INDEPENDENT, _FLG_BLOCK_CHECKSUM = 0x40, 0x20, 0x10
_FLG_CONTENT_SIZE, _FLG_DICTIONARY = 0x08, 0x01
# `compress` writes two bytes into each frame header: FLG (independent blocks) and BD (blocks of at most 64 KB).
_DESCRIPTOR = bytes([_FLG_VERSION_1 | _FLG_INDEPENDENT, 4 << 4])
_STORED = 0x80000000
_UINT32 = Struct("<I")


class LZ4FrameError(ValueError):
    """The error for bytes that are not a valid LZ4 frame, or that use a feature which Kafka does not allow."""


class Frame(NamedTuple):
    """The decoded header of an LZ4 frame."""

    independent: bool
    block_checksums: bool
    block_max_size: int
    descriptor_end: int  # the position of the header checksum (HC); the blocks begin after it


def compress(
    data: bytes | bytearray | memoryview, *, broken_checksum: bool = False, level: int = DEFAULT_LEVEL
) -> bytes:
    """Compress data, and return an LZ4 frame with independent blocks of 64 KB.

    Clients before Kafka 0.10 expect a wrong header checksum in messages v0. If `broken_checksum` is true, the frame
    contains this checksum.
    """
    checksum = header_checksum(FRAME_MAGIC + _DESCRIPTOR if broken_checksum else _DESCRIPTOR)
    parts: list[bytes | memoryview] = [FRAME_MAGIC, _DESCRIPTOR, bytes([checksum])]
    view = memoryview(data)
    for start in range(0, len(view), BLOCK_SIZE):
        block = view[start : start + BLOCK_SIZE]
        packed = _compress_block(block, level)
        if len(packed) < len(block):
            parts += [_UINT32.pack(len(packed)), packed]
        else:
            parts += [_UINT32.pack(len(block) | _STORED), block]
    parts.append(END_MARK)
    return b"".join(parts)


def _compress_block(block: memoryview, level: int) -> bytes | memoryview:
    """Compress one block. The result does not contain the size field of the block.

    With the default level, the library cramjam can compress a single block. With other levels, it can only write a
    complete frame. For another level, the function therefore compresses the block as a frame, and takes the block
    out of the frame.
    """
    if level == DEFAULT_LEVEL:
        return bytes(cramjam.lz4.compress_block(block, store_size=False))
    encoder = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    encoder.compress(bytes(block))
    frame = memoryview(bytes(encoder.finish()))
    ((_, packed),) = _blocks(frame, _parse_header(frame))  # The frame has exactly one block.
    return packed


def decompressed_bound(data: memoryview) -> int:
    """Return an upper bound of the frame's decompressed size in bytes.

    The bound is the sum of the blocks' maximum sizes.
    """
    frame = _parse_header(data)
    return sum(
        size & ~_STORED if size & _STORED else min(frame.block_max_size, MAX_RATIO * size)
        for size, _ in _blocks(data, frame)
    )


def decompress_into(data: memoryview, output: memoryview, *, check_header: bool) -> int:
    """Decompress the frame into `output`, and return the number of bytes written.

    Raises LZ4FrameError if the frame is invalid, and cramjam's DecompressionError if `output` is too small.
    """
    frame = _parse_header(data)
    checksum = header_checksum(bytes(data[4 : frame.descriptor_end]))
    if checksum != data[frame.descriptor_end]:
        if check_header:
            raise LZ4FrameError("the checksum of the LZ4 frame header is wrong")
        data = memoryview(bytes(data[: frame.descriptor_end]) + bytes([checksum]) + data[frame.descriptor_end + 1 :])
    if not frame.independent:
        return cramjam.lz4.decompress_into(data, output)
    written = 0
    for size, block in _blocks(data, frame):
        room = output[written : written + frame.block_max_size]
        if size & _STORED:
            if len(block) > len(room):
                raise cramjam.DecompressionError("an uncompressed block of the LZ4 frame is too long")
            room[: len(block)] = block
            written += len(block)
        else:
            written += cramjam.lz4.decompress_block_into(block, room)
    return written


def _parse_header(data: memoryview) -> Frame:
    if len(data) < 7 or data[:4] != FRAME_MAGIC:
        raise LZ4FrameError("not an LZ4 frame")
    frame = _frame(data[4], data[5])
    if len(data) <= frame.descriptor_end:
        raise LZ4FrameError("the LZ4 frame ends inside its header")
    return frame


@lru_cache(maxsize=64)
def _frame(flags: int, block_descriptor: int) -> Frame:
    if flags & 0xC0 != _FLG_VERSION_1 or flags & _FLG_DICTIONARY:
        raise LZ4FrameError(f"LZ4 frame of an unknown kind (flags {flags:#04x})")
    if not 4 <= block_descriptor >> 4 <= 7:
        raise LZ4FrameError(f"LZ4 frame with an unknown block size ({block_descriptor:#04x})")
    return Frame(
        independent=bool(flags & _FLG_INDEPENDENT),
        block_checksums=bool(flags & _FLG_BLOCK_CHECKSUM),
        block_max_size=1 << (8 + 2 * (block_descriptor >> 4)),
        descriptor_end=14 if flags & _FLG_CONTENT_SIZE else 6,
    )


def _blocks(data: memoryview, frame: Frame) -> Iterator[tuple[int, memoryview]]:
    """Yield the size field and the bytes of each block in the frame.

    If a block is not compressed, the highest bit of its size field is set.
    """
    position = frame.descriptor_end + 1
    while position + 4 <= len(data):
        (size,) = _UINT32.unpack_from(data, position)
        if size == 0:
            return
        start, end = position + 4, position + 4 + (size & ~_STORED)
        if end > len(data) or end - start > frame.block_max_size:
            raise LZ4FrameError(f"the LZ4 block at {position} is larger than the frame allows, or is cut off")
        yield size, data[start:end]
        position = end + (4 if frame.block_checksums else 0)
    raise LZ4FrameError(f"the LZ4 frame ends at {len(data)} without its end mark")


_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393


@lru_cache(maxsize=64)  # Most frames have one of a few descriptors (header bytes), so the cache usually has the result.
def header_checksum(descriptor: bytes) -> int:
    """Return the header checksum: the second byte of the xxHash-32 of the bytes in `descriptor`.

    A descriptor has fewer than 16 bytes, so the function omits the xxHash-32 steps for longer inputs.
    """
    h = _PRIME_5 + len(descriptor)
    whole = len(descriptor) & ~3
    for (word,) in _UINT32.iter_unpack(descriptor[:whole]):
        h = _rotate(h + word * _PRIME_3, 17) * _PRIME_4
    for byte in descriptor[whole:]:
        h = _rotate(h + byte * _PRIME_5, 11) * _PRIME_1
    h &= 0xFFFFFFFF
    h = ((h ^ h >> 15) * _PRIME_2) & 0xFFFFFFFF
    h = ((h ^ h >> 13) * _PRIME_3) & 0xFFFFFFFF
    return (h ^ h >> 16) >> 8 & 0xFF


def _rotate(value: int, bits: int) -> int:
    value &= 0xFFFFFFFF
    return (value << bits | value >> (32 - bits)) & 0xFFFFFFFF
