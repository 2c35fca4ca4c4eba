"""The codecs of records: compression, and decompression within a limit.

`decompress` computes an upper bound of the decompressed size before it allocates memory. The modules `lz4_frame`,
`snappy_framing` and `zstd_frame` each find this bound for one format. The gzip format reveals no bound. A gzip stream
is therefore decompressed in pieces, and decompression stops at the limit.
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from io import BytesIO

import cramjam

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records.compression import lz4_frame, snappy_framing, zstd_frame

# The largest size (bytes) to which one batch may be decompressed, unless the caller passes another limit. By default
# Kafka limits a compressed batch to 1 MB, so this limit allows data that compress to 1/32.
DEFAULT_LIMIT = 32 << 20

_GZIP_WBITS = 16 + zlib.MAX_WBITS  # makes zlib expect the header and the trailer of gzip
_GZIP_PIECE = 1 << 20  # bytes


class Codec(IntEnum):
    """The codecs, with their numbers in the low three bits of the attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def codec_of(attributes: int) -> Codec:
    """Return the codec in the attributes of a batch or a message. Raises UNSUPPORTED_COMPRESSION_TYPE."""
    try:
        return Codec(attributes & 0x07)
    except ValueError:
        why = f"no compression codec has the number {attributes & 0x07}"
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, why) from None


def compress(codec: Codec, data: bytes | bytearray | memoryview, magic: int = 2, *, level: int | None = None) -> bytes:
    """Return the compressed data in the form that Kafka's clients expect in a batch or message of this magic.

    A higher `level` of gzip, lz4 or zstd takes more time and produces fewer bytes. None selects Kafka's default level.
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

    Raises CORRUPT_MESSAGE if the data cannot be decompressed, and MESSAGE_TOO_LARGE if it has more than `limit` bytes
    afterwards.
    """
    return _decompressed(codec, memoryview(data), limit, magic).getvalue()


def decompress_writable(
    codec: Codec, data: bytes | memoryview, *, limit: int = DEFAULT_LIMIT, magic: int = 2
) -> memoryview:
    """Return the decompressed data in writable memory. Raises the same errors as `decompress`."""
    return _decompressed(codec, memoryview(data), limit, magic).getbuffer()


def _decompressed(codec: Codec, data: memoryview, limit: int, magic: int) -> BytesIO:
    """Return the decompressed data in a BytesIO, whose `getbuffer` and `getvalue` return the bytes without a copy."""
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
        # Each codec raises a different error if the buffer is too small for the decompressed data. That can happen only
        # if the limit is lower than the size that the data could have.
        if bound > limit:
            raise _too_large(codec, limit) from error
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"cannot decompress {codec.name.lower()}: {error}") from error


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
    """Return the content of all streams in the data. Gzip data may consist of several streams."""
    content = BytesIO()  # Joining a list of pieces would need the memory twice.
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
