"""Compression codecs of records, and decompression that a hostile sender cannot blow up.

A producer compresses a whole batch, never single records: the win comes from what records have in common.  The broker
stores the batch as it came, and the consumer decompresses it (KIP-98; for message sets v0/v1 see `message_set`).  The
codec's number stands in the low three bits of the attributes.

A few kilobytes can decompress to gigabytes (CVE-2023-34455 and its kin).  So `decompress` first finds an upper bound
from the compressed bytes alone (each format gives one away, see `lz4_frame`, `snappy_framing`, `zstd_frame`; gzip can
be stopped on the way), never allocates more than the limit, and refuses what would go above it.
"""

import zlib
from enum import IntEnum

import cramjam

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import lz4_frame, snappy_framing, zstd_frame

# The largest content of one batch that is read unless the caller says otherwise: Kafka's default for a compressed batch
# is 1 MB, so this leaves room for a ratio of 32.
DEFAULT_LIMIT = 32 << 20

_GZIP_WBITS = 16 + zlib.MAX_WBITS  # zlib's way to ask for gzip's header and trailer
_GZIP_PIECE = 1 << 20


class Codec(IntEnum):
    """The number in the attributes' low three bits."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def codec_of(attributes: int) -> Codec:
    """The codec in the low three bits of a batch's or message's attributes."""
    try:
        return Codec(attributes & 0x07)
    except ValueError:
        why = f"no compression codec has the number {attributes & 0x07}"
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, why) from None


def compress(codec: Codec, data: bytes | bytearray | memoryview, magic: int = 2, *, level: int | None = None) -> bytes:
    """The data compressed as Kafka's clients expect it inside records of this magic.

    `level`: of gzip, lz4 and zstd, from fast to small; None: Kafka's default.
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
    """The data decompressed; CORRUPT_MESSAGE if that fails, MESSAGE_TOO_LARGE if it comes to more than `limit`."""
    view = memoryview(data)
    bound = 0
    try:
        if codec is Codec.NONE:
            return bytes(view)
        if codec is Codec.GZIP:
            return _gunzip(view, limit)
        bound = _DECOMPRESSED_BOUND[codec](view)
        output = bytearray(min(bound, limit))
        size = _decompress_into(codec, view, output, magic)
    except (ValueError, zlib.error, cramjam.DecompressionError) as error:
        # The codecs say "no room" in many ways; with room for everything that the blocks can hold it was damage.
        if bound > limit:
            raise _too_large(codec, limit) from error
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"cannot decompress {codec.name.lower()}: {error}") from error
    return bytes(memoryview(output)[:size])


_DECOMPRESSED_BOUND = {
    Codec.SNAPPY: snappy_framing.decompressed_size,
    Codec.LZ4: lz4_frame.decompressed_bound,
    Codec.ZSTD: zstd_frame.decompressed_bound,
}


def _decompress_into(codec: Codec, data: memoryview, output: bytearray, magic: int) -> int:
    if codec is Codec.SNAPPY:
        return snappy_framing.decompress_into(data, output)
    if codec is Codec.LZ4:
        return lz4_frame.decompress_into(data, output, check_header=magic > 0)
    return cramjam.zstd.decompress_into(data, output)


def _gunzip(data: memoryview, limit: int) -> bytes:
    """Piece by piece, and over all members: gzip data may be several streams one after the other."""
    pieces: list[bytes] = []
    room = limit
    rest: bytes | memoryview = data
    while rest or not pieces:
        stream = zlib.decompressobj(wbits=_GZIP_WBITS)
        while not stream.eof:
            piece = stream.decompress(rest, _GZIP_PIECE)
            room -= len(piece)
            if room < 0:
                raise _too_large(Codec.GZIP, limit)
            if not piece and not stream.eof:
                raise ValueError("the gzip stream is cut off")
            pieces.append(piece)
            rest = stream.unconsumed_tail
        rest = stream.unused_data
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _too_large(codec: Codec, limit: int) -> KafkaError:
    why = f"what is compressed with {codec.name.lower()} comes to more than the {limit} bytes left for it"
    return KafkaError(ErrorCode.MESSAGE_TOO_LARGE, why)
