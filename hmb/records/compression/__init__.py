"""Compression: the codecs of records, and a bound on what decompression allocates.

A producer compresses a whole batch, never a single record. The gain comes from the bytes that the records share. The
broker stores the batch as it receives it, and the consumer decompresses it (KIP-98). The low three bits of a batch's
attributes hold the number of its codec::

    0 none    1 gzip    2 snappy    3 lz4    4 zstd

Decompression is an attack surface, because a few kilobytes can decompress to gigabytes (CVE-2023-34455). So the caller
of `decompress` passes a limit in bytes. `decompress` first computes an upper bound of the decompressed size from the
compressed bytes alone. Then it allocates one buffer, as large as the smaller of the bound and the limit, and
decompresses into this buffer. For example, a zstd frame of 3 blocks holds at most 3 x 128 KB. With a limit of 32 MB,
`decompress` allocates 384 KB for this frame.

Read in this order:

- `codecs`          the five codecs, `compress` and `decompress`
- `snappy_framing`  snappy-java's framing, which Kafka's clients use
- `lz4_frame`       the LZ4 frame format, with the wrong checksum of old clients
- `zstd_frame`      the bound on the content of zstd frames

A first reading of HMB needs only `codecs`. The other three modules describe details of the formats.
"""

from hmb.records.compression.codecs import DEFAULT_LIMIT, Codec, codec_of, compress, decompress, decompress_writable

__all__ = ["DEFAULT_LIMIT", "Codec", "codec_of", "compress", "decompress", "decompress_writable"]
