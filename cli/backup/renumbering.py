"""The batches that `hmb restore` sends to a broker, and the offsets that their records get.

A client cannot send every batch that a log contains, so this module changes some batches:
- The module leaves out transaction markers and the batches of aborted transactions. All records that remain were
  committed, so the module does not send them in a transaction again.
- The module removes the producer id and the transaction bit of each remaining batch, because they belong to producers
  of the old cluster.
- The module encodes a batch again if offsets are missing in the batch (for example after compaction), because the
  offsets in a Produce request must have no gaps.
- The module encodes a batch again if the broker has set its timestamp (log append time), because a client may not send
  such a batch. In the new batch, each record has its own timestamp.

If this module does not encode a batch again, the bytes of the batch's records do not change, and compressed records
stay compressed.

For example, a partition has the records 0 to 9 of a transaction, a transaction marker at offset 10, and the records 11
to 19. The marker is left out, so the new offsets are 0 to 9 and 10 to 18.

A translation (hmb/mirror/translation.py) maps old offsets to new offsets. It stores one entry for each run, that is,
for a range of offsets without a gap. For example, the runs (0 -> 0) and (11 -> 10) mean: old offset 0 becomes 0, old
offset 1 becomes 1, and so on. From old offset 11 on, each new offset is one less than the old offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hmb.mirror.translation import CopiedRun, Translation
from hmb.records import Batch, ControlType, RecordBatch, control_type, encode_batch
from hmb.records.aborted import AbortedTransactions
from hmb.records.changed_batch import as_produced, is_sendable


def new_offsets() -> Translation:
    """Return an empty translation from old offsets to new offsets, for one partition.

    `restorable` adds each restored record to this translation.
    """
    return Translation([CopiedRun(0, 0, 0)], keeps_all=True)


def aborted_transactions(batches: Iterable[Batch]) -> AbortedTransactions:
    """Return the aborted transactions of a partition. The function finds them by the ABORT markers in the batches."""
    first_offsets: dict[int, int] = {}
    aborted = []
    for batch in batches:
        if not isinstance(batch, RecordBatch) or not batch.is_transactional:
            continue
        first = first_offsets.setdefault(batch.producer_id, batch.base_offset)
        if batch.is_control:
            del first_offsets[batch.producer_id]
            if any(control_type(record) is ControlType.ABORT for record in batch.records()):
                aborted.append((batch.producer_id, first))
    return AbortedTransactions(aborted)


def restorable(
    batches: Iterable[Batch], aborted: AbortedTransactions, start: int, offsets: Translation
) -> Iterator[bytes]:
    """Yield the batches that a restore sends. Add the old and the new offsets of their records to `offsets`.

    Leave out records whose old offset is below `start`.
    """
    for batch in batches:
        if aborted.covers(batch) or batch.is_control:
            continue
        if isinstance(batch, RecordBatch) and batch.base_offset >= start and is_sendable(batch):
            offsets.add(batch.base_offset, offsets.target_end, batch.records_count)
            yield as_produced(batch)
            continue
        records = [record for record in batch.records() if record.offset >= start]
        for record in records:
            offsets.add(record.offset, offsets.target_end, 1)
        if records:
            yield encode_batch(records, codec=batch.codec)
