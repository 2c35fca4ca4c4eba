"""Computes an upper bound of the decompressed size of zstd frames (KIP-110, RFC 8878).

Before the library cramjam decompresses zstd frames, this module computes a *bound*: the decompressed data
cannot be larger than the bound. A frame has this layout ([...] is optional):
    magic                28 B5 2F FD
    descriptor           1 byte
    [window descriptor   1 byte: memory size for decompression]
    [dictionary id       1-4 bytes]
    [content size        1-8 bytes: decompressed size]
    blocks               each block: 3 bytes (little endian), content
    [checksum            4 bytes]

The bits of the descriptor and of a block's first 3 bytes:
    descriptor  bits 7-6: code for the length of "content size"
                bit 5: single segment (no window descriptor)
                bit 2: checksum exists
                bits 1-0: code for the length of "dictionary id"
    block       bit 0: last block
                bits 1-2: type (raw, one byte repeated, compressed)
                other bits: size

A zstd frame may contain the size of the decompressed data. But Kafka's Java clients omit this size, and an attacker may
write a false size. So this module counts the blocks of the frame instead, because a block decompresses to at most 128
KB. For example, 3 compressed blocks decompress to at most 384 KB.
"""

FRAME_MAGIC = 0xFD2FB528
SKIPPABLE_MAGIC = range(0x184D2A50, 0x184D2A60)
BLOCK_MAX_SIZE = 1 << 17
_RAW, _RUN_LENGTH, _COMPRESSED = 0, 1, 2


class ZstdFrameError(ValueError):
    """The error for bytes that are not valid zstd frames."""


def decompressed_bound(data: memoryview) -> int:
    """Return an upper bound (bytes) of the decompressed size of all frames in the data.

    Raises ZstdFrameError if a frame is malformed.
    """
    bound = position = 0
    while position < len(data):
        magic = int.from_bytes(data[position : position + 4], "little")
        if magic in SKIPPABLE_MAGIC:
            position += 8 + int.from_bytes(data[position + 4 : position + 8], "little")
        elif magic == FRAME_MAGIC:
            size, position = _frame_bound(data, position + 4)
            bound += size
        else:
            raise ZstdFrameError(f"no zstd frame begins at {position}")
    if position > len(data):
        raise ZstdFrameError("the zstd frame is cut off")
    return bound


def _frame_bound(data: memoryview, position: int) -> tuple[int, int]:
    """Return an upper bound (bytes) of the frame's decompressed size, and the position after the frame.

    The parameter `position` is the index of the frame's descriptor in `data`. The descriptor follows the 4 bytes of
    the frame's magic number.
    """
    if position >= len(data):
        raise ZstdFrameError("the zstd frame ends inside its header")
    descriptor = data[position]
    single_segment = descriptor >> 5 & 1
    dictionary_id_size = (0, 1, 2, 4)[descriptor & 3]
    content_size_size = (single_segment, 2, 4, 8)[descriptor >> 6]
    position += 1 + (1 - single_segment) + dictionary_id_size + content_size_size
    bound = 0
    last = False
    while not last:
        if position + 3 > len(data):
            raise ZstdFrameError("the zstd frame ends inside its blocks")
        header = int.from_bytes(data[position : position + 3], "little")
        last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        bound += BLOCK_MAX_SIZE if kind == _COMPRESSED else size
        position += 3 + (1 if kind == _RUN_LENGTH else size)
    return bound, position + (4 if descriptor & 4 else 0)
