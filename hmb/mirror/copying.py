"""Prepares batches from the source cluster for sending to the target cluster.

The mirror usually need not decode the records of a batch, because their bytes are the same at every broker.
It copies these bytes, and writes a new header before them. In the new header, only a few fields are
different, for example the producer id and the sequence number. The records stay compressed, and keep their
keys, values, headers and timestamps.

In five cases, the mirror cannot copy the bytes of the records. It must decode the records, and encode them as a new
batch:

- The offsets in the batch have gaps, because compaction has removed records. The target refuses gaps in a batch
  from a producer such as the mirror.

- The source broker has set the batch's timestamps (LogAppendTime). The target refuses LogAppendTime batches
  from a producer such as the mirror.

- The batch header contains a delete horizon instead of the base timestamp. A delete horizon is the time after
  which compaction can delete the batch's tombstones and markers.

- The mirror has already copied the first records of the batch, for example 2 of 5 records. It must copy only the
  other 3 records.

- The batch has an old message format (v0 or v1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hmb.mirror.translation import CopiedRun
from hmb.records import Batch, Record, RecordBatch, encode_batch
from hmb.records.changed_batch import as_produced, is_sendable
from hmb.records.producer_numbers import BatchNumbers


class SourceBatch(NamedTuple):
    """A batch of the source. The mirror copies only the records at the offset `first` and above."""

    batch: Batch
    first: int

    @property
    def is_whole(self) -> bool:
        """Whether the mirror can copy the batch without decoding its records."""
        batch = self.batch
        return isinstance(batch, RecordBatch) and self.first <= batch.base_offset and is_sendable(batch)

    def records(self) -> list[Record]:
        return [record for record in self.batch.records() if record.offset >= self.first]


class CopiedBatch(NamedTuple):
    """A batch for a Produce request, with the source offsets of its records.

    `source_runs` contains one `CopiedRun(source, target, length)` for each series of consecutive source offsets.
    `target` is the index of the run's first record in this batch, because the target cluster has not assigned
    offsets yet.

    For example, the source offsets 5, 6 and 9 become `CopiedRun(5, 0, 2)` and `CopiedRun(9, 2, 1)`.
    """

    data: bytes
    records: int
    source_runs: list[CopiedRun]


def copied(source: SourceBatch, numbers: BatchNumbers, *, transactional: bool) -> CopiedBatch | None:
    """Return the batch that the mirror sends to the target, or None if the source batch has no records to copy.

    Raises CORRUPT_MESSAGE if the CRC of the source batch is wrong.
    """
    batch = source.batch
    batch.check()
    if source.is_whole and isinstance(batch, RecordBatch):
        run = CopiedRun(batch.base_offset, 0, batch.records_count)
        return CopiedBatch(as_produced(batch, numbers, transactional=transactional), batch.records_count, [run])
    records = source.records()
    if not records:
        return None
    data = encode_batch(
        records,
        codec=batch.codec,
        transactional=transactional,
        **numbers._asdict(),
    )
    return CopiedBatch(data, len(records), list(runs_of(record.offset for record in records)))


def runs_of(offsets: Iterable[int]) -> Iterator[CopiedRun]:
    """Divide ascending source offsets into runs of consecutive offsets, and yield one `CopiedRun` for each run.

    For example, the offsets 5, 6 and 9 become the runs `CopiedRun(5, 0, 2)` and `CopiedRun(9, 2, 1)`. The fields
    are `source`, `target` and `length`. The target offsets are not known yet. So `target` is the index of the run's
    first record in `offsets`.
    """
    first, count, position = 0, 0, 0
    for offset in offsets:
        if count and offset != first + count:
            yield CopiedRun(first, position, count)
            position, count = position + count, 0
        if not count:
            first = offset
        count += 1
    yield CopiedRun(first, position, count)
