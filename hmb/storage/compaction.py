"""Compaction, the rule: of all records with the same key, the log keeps the last one.

A compacted log is a table in the form of its changes: whoever reads it from the start knows the last value of each key.
Offsets never change, they only get gaps.  A record without a value, a *tombstone*, deletes its key; it is itself kept
for `delete.retention.ms` after it was compacted first, so that readers who are on their way learn of it.

The rule for one record, in this order; it is dropped when

1. its transaction was aborted (such a record counts for nothing, so it does not hide an older one either);
2. it has no key, as only records from before the topic was compacted can;
3. the map knows a later record with its key;
4. it is a tombstone, and its batch's delete horizon has come.

The map (key -> last offset) is built from the records that were not compacted yet, the *dirty* ones.  When it has taken
`log.cleaner.dedupe.buffer.size` bytes it ends there, and so does this round: what lies behind stays dirty.

Source: Kafka's `Cleaner`, KIP-534 (delete horizon).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hmb.records import Batch, ControlType, RecordBatch, control_type
from hmb.records.filtering import empty_batch, filter_batch, keys_of
from hmb.storage.producer_state import LastBatch

ENTRY_OVERHEAD = 130  # bytes: a slot of a dict, and the objects for a short key and its offset


class OffsetMap:
    """key -> offset of the last record with it, up to `max_bytes` of memory."""

    def __init__(self, max_bytes: int) -> None:
        self.latest: dict[bytes, int] = {}
        self.end_offset = 0  # the map knows the records before it
        self._room = max_bytes

    def add(self, batch: Batch, *, counts: bool) -> bool:
        """Note a batch's keys; False where there is no room for it.  `counts`: it was not aborted."""
        latest = self.latest
        if counts:
            if self._room <= 0:
                return False
            for offset, key in keys_of(batch):
                if key is not None:
                    if key not in latest:
                        self._room -= ENTRY_OVERHEAD + len(key)
                    latest[key] = offset
        self.end_offset = batch.last_offset + 1
        return True


@dataclass(slots=True)
class Transactions:
    """What markers say of a log's transactions: which batches were aborted, and where the first open one begins."""

    aborted: list[tuple[int, int, int]] = field(default_factory=list)  # producer id, first and last offset
    open: dict[int, int] = field(default_factory=dict)  # producer id -> first offset

    def note(self, batch: Batch) -> None:
        """Take the next batch of the log into account; of control batches the records are needed."""
        if not batch.is_transactional:
            return
        if not batch.is_control:
            self.open.setdefault(batch.producer_id, batch.base_offset)
            return
        first = self.open.pop(batch.producer_id, None)
        if first is not None and any(control_type(record) is ControlType.ABORT for record in batch.records()):
            self.aborted.append((batch.producer_id, first, batch.base_offset))

    def is_aborted(self, batch: Batch) -> bool:
        if not batch.is_transactional or batch.is_control:
            return False
        offset = batch.last_offset
        return any(producer == batch.producer_id and first <= offset <= last for producer, first, last in self.aborted)


@dataclass(frozen=True, slots=True)
class Compaction:
    """The rule, with all it needs to know."""

    map: OffsetMap
    transactions: Transactions
    last_batches: dict[int, LastBatch]  # of each producer
    now: int  # ms
    delete_retention_ms: int

    def apply(self, batch: Batch, *, drop_old_tombstones: bool) -> bytes | memoryview | None:
        """What is left of a batch.  `drop_old_tombstones` is for messages v0 and v1, which have no delete horizon."""
        if batch.is_control or batch.last_offset >= self.map.end_offset:
            return batch.view
        kept = None
        if not self.transactions.is_aborted(batch):
            horizon = batch.delete_horizon if isinstance(batch, RecordBatch) else None
            drop_tombstones = (
                drop_old_tombstones if not isinstance(batch, RecordBatch) else _has_come(horizon, self.now)
            )
            latest = self.map.latest

            def keep(offset: int, key: bytes | None, is_tombstone: bool) -> bool:
                return key is not None and latest.get(key, -1) <= offset and not (is_tombstone and drop_tombstones)

            kept = filter_batch(batch, keep, delete_horizon=self.now + self.delete_retention_ms)
        if kept is None and isinstance(batch, RecordBatch) and self._is_last_of_producer(batch):
            return empty_batch(batch)
        return kept

    def _is_last_of_producer(self, batch: RecordBatch) -> bool:
        last = self.last_batches.get(batch.producer_id)
        return last is not None and last.is_in(batch)


def _has_come(horizon: int | None, now: int) -> bool:
    return horizon is not None and horizon <= now
