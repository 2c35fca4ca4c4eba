"""The two checksums of Kafka's records.

A checksum is computed by the producer over everything that nobody may change on the way, and checked by the broker
before it appends, and by the consumer before it believes.  What the broker itself fills in (offset, leader epoch)
stands *in front of* the checksum and is not covered, so that an append never has to read the records again.

- message sets (v0, v1): CRC-32 (IEEE 802.3, as in gzip), one per message;
- record batches (v2): CRC-32C (Castagnoli, KIP-98), one per batch.  It finds the same errors, but processors have an
  instruction for it: some 10 GB/s, where CRC-32 is table-driven in most clients of 2015.

Both take any buffer, and none of them copies it.
"""

from zlib import crc32

from crc32c import crc32c

__all__ = ["crc32", "crc32c"]
