"""Compression: the codecs of records, and a limit on the memory that decompression needs.

A producer compresses all records of a batch together, because records often contain the same bytes, for example field
names. Usually the broker stores the compressed bytes unchanged, and the consumer decompresses them. The lowest three
bits of a batch's attributes contain the number of its codec:
    0 none    1 gzip    2 snappy    3 lz4    4 zstd

A few kilobytes of compressed data can decompress to gigabytes. An attacker could send such data to use up all memory
of the receiver (CVE-2023-34455). The caller of `decompress` therefore passes a limit in bytes. If the decompressed
data is larger than the limit, `decompress` raises MESSAGE_TOO_LARGE.

For snappy, lz4 and zstd, `decompress` first computes the maximum decompressed size from the compressed bytes.
It then allocates one buffer of this size. If the caller's limit is smaller, the buffer has only the size of the
limit. For example, 3 zstd blocks decompress to at most 3 x 128 KB. With a limit of 32 MB, the buffer has only
384 KB.

Gzip data does not show how large the decompressed data can become. So `decompress` decompresses gzip data piece by
piece, and stops at the limit.

Read in this order:
- `codecs`          the functions `compress` and `decompress`, for all codecs
- `snappy_framing`  the format of the library snappy-java, which Kafka's clients use
- `lz4_frame`       the LZ4 frame format, also with the wrong header checksum that clients before Kafka 0.10 expect
- `zstd_frame`      computes the largest possible size of decompressed zstd data

If you read HMB for the first time, read only `codecs`. The other modules describe details of the formats.
"""

from hmb.records.compression.codecs import (
    CODEC_MASK,
    DEFAULT_LIMIT,
    Codec,
    codec_of,
    compress,
    decompress,
    decompress_writable,
)

__all__ = ["CODEC_MASK", "DEFAULT_LIMIT", "Codec", "codec_of", "compress", "decompress", "decompress_writable"]
