"""The batches that `hmb restore` sends to a broker, and the offsets that their records get.

A client cannot send every batch exactly as it is stored in a log. This module therefore makes these changes:
- It leaves out transaction markers and the batches of aborted transactions. All remaining records were committed, so
  they do not need a new transaction.
- It removes the producer id and the transaction bit from each remaining batch, because its producer belongs to the old
  cluster.
- It encodes a batch again if offsets are missing in the batch, for example after compaction. The offsets in a Produce
  request must have no gaps.
- It encodes a batch again if the broker has set the batch's timestamp (log append time) or its delete horizon. A client
  is not allowed to send such a batch. In the new batch, each record has its own timestamp.

If a batch does not need a new encoding, `hmb restore` sends the bytes of its records exactly as the backup
contains them. Compressed records stay compressed.

For example, a partition has the records 0 to 9 of a transaction, a transaction marker at offset 10, and the records 11
to 19. The marker is left out, so the new offsets are 0 to 9 and 10 to 18.

A translation (hmb/mirror/translation.py) maps old offsets to new offsets. For each *run* (a range of old offsets
without a gap), the translation stores the old and the new offset of the first record. In the example, it stores
0 -> 0 and 11 -> 10. Offset 15 (11 + 4) therefore becomes 14 (10 + 4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hmb.mirror.translation import CopiedRun, Translation
from hmb.records import Batch, ControlType, RecordBatch, control_type, encode_batch
from hmb.records.aborted import AbortedTransactions
from hmb.records.changed_batch import as_produced, is_sendable


def new_offsets() -> Translation:
    """Return an empty translation from old offsets to new offsets, for one partition.

    The function `restorable` adds the restored records' offsets to the translation.
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
