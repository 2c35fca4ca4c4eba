"""The codecs of records: functions that compress data, and decompress data with a limit on memory.

A small compressed batch can become very large, so `decompress` has a limit for the decompressed data. For
snappy, lz4 and zstd, it computes a *bound*: the decompressed data cannot be larger than the bound. The modules
`lz4_frame`, `snappy_framing` and `zstd_frame` compute the bound from the compressed bytes. `decompress` then
allocates memory for the bound or for the limit, whichever is smaller.

Gzip data does not show how large the decompressed data can become. So `decompress` decompresses gzip data piece
by piece, and stops when the data exceeds the limit.
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from io import BytesIO

import cramjam

from hmb.protocol.errors import ErrorCode, KafkaError, corrupt_message
from hmb.records.compression import lz4_frame, snappy_framing, zstd_frame

# By default, a decompressed batch has at most 32 MB. Kafka's default limit for a compressed batch is 1 MB. So the
# decompressed data may be up to 32 times as large.
DEFAULT_LIMIT = 32 << 20

CODEC_MASK = 0x07  # the bits of a batch's attributes that contain the number of the codec

_GZIP_WBITS = 16 + zlib.MAX_WBITS  # selects the gzip format in zlib
_GZIP_PIECE = 1 << 20  # bytes


class Codec(IntEnum):
    """The codecs and their numbers. The lowest 3 bits of a batch's attributes contain a codec's number."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


_CODECS = {codec.value: codec for codec in Codec}  # A look-up here takes 0.6 us less than `Codec(number)`.


def codec_of(attributes: int) -> Codec:
    """Return the codec whose number is in the lowest three bits of a batch's or message's `attributes`.

    Raises UNSUPPORTED_COMPRESSION_TYPE if no codec has this number.
    """
    codec = _CODECS.get(attributes & CODEC_MASK)
    if codec is None:
        why = f"no compression codec has the number {attributes & CODEC_MASK}"
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, why)
    return codec


def compress(codec: Codec, data: bytes | bytearray | memoryview, magic: int = 2, *, level: int | None = None) -> bytes:
    """Compress data in the format that Kafka's clients expect.

    `magic` is the number of the format of the batch or message. `level` is the compression level of gzip, lz4 or
    zstd. None means Kafka's default level. For gzip and zstd, a higher level usually takes more time, and gives a
    smaller result.
    """
    match codec:
        case Codec.NONE:
            return bytes(data)
        case Codec.GZIP:
            return zlib.compress(data, zlib.Z_DEFAULT_COMPRESSION if level is None else level, wbits=_GZIP_WBITS)
        case Codec.SNAPPY:
            return snappy_framing.compress(data)
        case Codec.LZ4:
            level = lz4_frame.DEFAULT_LEVEL if level is None else level
            return lz4_frame.compress(data, broken_checksum=magic == 0, level=level)
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(data, level=level))


def decompress(codec: Codec, data: bytes | memoryview, *, limit: int = DEFAULT_LIMIT, magic: int = 2) -> bytes:
    """Return the decompressed data.

    Raises CORRUPT_MESSAGE if the data is damaged, and MESSAGE_TOO_LARGE if the decompressed data has more than `limit`
    bytes.
    """
    return _decompressed(codec, memoryview(data), limit, magic).getvalue()


def decompress_writable(
    codec: Codec, data: bytes | memoryview, *, limit: int = DEFAULT_LIMIT, magic: int = 2
) -> memoryview:
    """Return a writable memoryview of the decompressed data. Raises the same errors as `decompress`."""
    return _decompressed(codec, memoryview(data), limit, magic).getbuffer()


def _decompressed(codec: Codec, data: memoryview, limit: int, magic: int) -> BytesIO:
    """Return the decompressed data as a BytesIO, whose methods `getbuffer` and `getvalue` do not copy the bytes."""
    bound = 0
    try:
        if codec is Codec.NONE:
            return BytesIO(data)
        if codec is Codec.GZIP:
            return _gunzip(data, limit)
        bound = _DECOMPRESSED_BOUND[codec](data)
        stream = BytesIO(bytes(min(bound, limit)))
        with stream.getbuffer() as buffer:
            size = _decompress_into(codec, data, buffer, magic)
        stream.truncate(size)
        return stream
    except (ValueError, zlib.error, cramjam.DecompressionError) as error:
        # A codec raises the same exception for damaged data and for a buffer that is too small. So if the data could be
        # larger than the buffer (`limit` bytes), report it as too large.
        if bound > limit:
            raise _too_large(codec, limit) from error
        raise corrupt_message(f"cannot decompress {codec.name.lower()}: {error}") from error


_DECOMPRESSED_BOUND = {
    Codec.SNAPPY: snappy_framing.decompressed_size,
    Codec.LZ4: lz4_frame.decompressed_bound,
    Codec.ZSTD: zstd_frame.decompressed_bound,
}


def _decompress_into(codec: Codec, data: memoryview, output: memoryview, magic: int) -> int:
    if codec is Codec.SNAPPY:
        return snappy_framing.decompress_into(data, output)
    if codec is Codec.LZ4:
        return lz4_frame.decompress_into(data, output, check_header=magic > 0)
    return cramjam.zstd.decompress_into(data, output)


def _gunzip(data: memoryview, limit: int) -> BytesIO:
    """Decompress all gzip streams in the data. Gzip data may consist of several streams."""
    content = BytesIO()  # A list of pieces would need twice the memory when it is joined.
    rest: bytes | memoryview = data
    while True:
        stream = zlib.decompressobj(wbits=_GZIP_WBITS)
        while not stream.eof:
            piece = stream.decompress(rest, _GZIP_PIECE)
            if content.tell() + len(piece) > limit:
                raise _too_large(Codec.GZIP, limit)
            if not piece and not stream.eof:
                raise ValueError("the gzip stream is cut off")
            content.write(piece)
            rest = stream.unconsumed_tail
        rest = stream.unused_data
        if not rest:
            return content


def _too_large(codec: Codec, limit: int) -> KafkaError:
    why = f"what is compressed with {codec.name.lower()} comes to more than the {limit} bytes left for it"
    return KafkaError(ErrorCode.MESSAGE_TOO_LARGE, why)
