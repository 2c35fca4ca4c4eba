"""Prepares a batch of the source for the target.

The records of a batch have the same bytes at every broker, so the mirror usually need not decode the records. It copies
the bytes of the records unchanged, and writes a new header before them. In this header, it replaces a few fields, for
example the producer id and the sequence number. The records stay compressed, and keep their keys, values, headers and
timestamps.

The mirror cannot copy some batches as they are. It decodes their records and encodes a new batch, for these reasons:
- Compaction has removed records. A producer may only send batches without gaps.
- The source has set the timestamps (LogAppendTime). A producer may only send batches with its own timestamps.
- Compaction has replaced the base timestamp in the header by a delete horizon, the time at which it may delete the
  batch's tombstones and markers.
- The mirror has already copied the first records of the batch.
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
    """A batch of the source. The mirror copies its records from the offset `first` on."""

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

    Each run in `source_runs` consists of records with consecutive source offsets. The field `target` of a run should
    contain the target offset of the run's first record, but this offset is not known before the target has written the
    batch. Until then, the field contains the index of this record in the batch.
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

    In each run, the field `target` contains the index of the run's first offset in `offsets`. Its target offset is not
    known yet. For example, the offsets 5, 6 and 9 become two runs: 5 and 6 with the index 0, and 9 with the index 2.
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
