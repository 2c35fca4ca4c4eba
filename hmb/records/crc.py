"""The two checksums of Kafka's records.

The producer computes a checksum over all bytes that must not change. The broker checks it before it appends the
records, and the consumer checks it before it decodes them. The broker sets the offset and the leader epoch. These
fields precede the checksum, and the checksum does not cover them. So an append does not compute the checksum again.

- Message sets (v0, v1) use CRC-32 (IEEE 802.3, as in gzip), with one checksum for each message.
- Record batches (v2) use CRC-32C (Castagnoli, KIP-98), with one checksum for each batch. Both checksums detect the
  same kinds of errors, but processors have an instruction for CRC-32C, which reaches some 10 GB/s.

The functions `crc32` and `crc32c` take any buffer and do not copy it.
"""

from zlib import crc32

from crc32c import crc32c

__all__ = ["crc32", "crc32c"]
