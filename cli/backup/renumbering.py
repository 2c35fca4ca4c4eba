"""The batches that `hmb restore` sends to a broker, and the offsets that their records get.

A client cannot send every batch that a log contains, so this module changes some batches:
- Batches of aborted transactions and transaction markers are left out. All other records are committed.
- The producer id and the transaction bit are removed. This id and this bit belong to the old cluster's producers.
- A batch with gaps is encoded again, because the offsets in a Produce request must have no gaps.
- A batch whose timestamps the broker has set (log append time) is encoded again, because a client may not send such a
  batch. In the new batch, each record has its own timestamp.

If `hmb restore` does not have to encode a batch again, the records keep their bytes, and compressed records stay
compressed. For example, a partition has the records 0 to 9 of a transaction, its marker at offset 10, and the records
11 to 19. The new offsets are 0 to 9 and 10 to 18. The translation (hmb/mirror/translation.py) stores two runs for these
offsets: (0 -> 0) and (11 -> 10).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hmb.mirror.translation import CopiedRun, Translation
from hmb.records import Batch, ControlType, RecordBatch, control_type, encode_batch
from hmb.records.aborted import AbortedTransactions
from hmb.records.changed_batch import as_produced, is_sendable


def new_offsets() -> Translation:
    """Return an empty translation for one partition. `restorable` adds the offsets of each restored record to it."""
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
    """Yield the batches to send, and add their records to `offsets`. Leave out records at offsets below `start`."""
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
