"""Compaction, the rule: of all records with the same key, the log keeps the last one.

A compacted log is a table in the form of its changes: whoever reads it from the start knows the last value of each key.
Offsets never change, they only get gaps.  A record without a value, a *tombstone*, deletes its key; it is itself kept
for `delete.retention.ms` after it was compacted first, so that readers who are on their way learn of it.

The rule for one record, in this order; it is dropped when

1. its transaction was aborted (such a record counts for nothing, so it does not hide an older one either);
2. it has no key, as only records from before the topic was compacted can;
3. the map knows a later record with its key;
4. it is a tombstone, and its batch's delete horizon has come.

A transaction's marker is kept as long as a batch of the transaction is there, and then for `delete.retention.ms`, as if
it were a tombstone.

The map (key -> last offset) is built from the records that were not compacted yet, the *dirty* ones.  When it has taken
`log.cleaner.dedupe.buffer.size` bytes it ends there, and so does this round: what lies behind stays dirty.

Source: Kafka's `Cleaner`, KIP-534 (delete horizon).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hmb.records import Batch, RecordBatch
from hmb.records.filtering import empty_batch, filter_batch, keys_of, with_delete_horizon
from hmb.storage.log_reading import aborted_transactions
from hmb.storage.producer_state import LastBatch
from hmb.storage.segment import Segment
from hmb.storage.transaction_index import AbortedTransaction

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


class Transactions:
    """Whose records the batches of a log are, which come one after the other: of transactions that were aborted?

    Before the batches of a segment come, `enter` looks up what is known of them in the transaction indexes.
    """

    def __init__(self) -> None:
        self._known_to = 0  # aborted transactions that begin before this offset were looked up
        self._coming: deque[AbortedTransaction] = deque()  # by first offset
        self._aborted: dict[int, AbortedTransaction] = {}  # by producer id: begun and not ended
        self._with_batches: set[int] = set()  # producer ids: of their transaction there are batches

    def enter(self, segments: Sequence[Segment], end_offset: int) -> None:
        """The batches of the first of these segments come next, up to `end_offset`; the others may hold its markers."""
        found = aborted_transactions(segments, segments[0].base_offset, end_offset)
        news = [each for each in found if each.first_offset >= self._known_to]
        self._coming.extend(sorted(news, key=lambda transaction: transaction.first_offset))
        self._known_to = end_offset

    def is_aborted(self, batch: Batch) -> bool:
        """Whether the batch, which is no marker, counts for nothing."""
        if not batch.is_transactional:
            return False
        self._begin(batch)
        self._with_batches.add(batch.producer_id)
        return batch.producer_id in self._aborted

    def end(self, marker: Batch) -> EndedTransaction:
        self._begin(marker)
        aborted = self._aborted.pop(marker.producer_id, None)
        has_batches = marker.producer_id in self._with_batches
        self._with_batches.discard(marker.producer_id)
        return EndedTransaction(has_batches, aborted if has_batches else None)

    def _begin(self, batch: Batch) -> None:
        while self._coming and self._coming[0].first_offset <= batch.last_offset:
            transaction = self._coming.popleft()
            self._aborted[transaction.producer_id] = transaction


class EndedTransaction(NamedTuple):
    """What is left of a transaction where its marker comes; the marker is needed as long as there are batches."""

    has_batches: bool
    aborted: AbortedTransaction | None


@dataclass(frozen=True, slots=True)
class Compaction:
    """The rule, with all it needs to know."""

    map: OffsetMap
    last_batches: dict[int, LastBatch]  # of each producer
    now: int  # ms
    delete_retention_ms: int

    def apply(self, batch: Batch, *, is_aborted: bool, drop_old_tombstones: bool) -> bytes | memoryview | None:
        """What is left of a batch.  `drop_old_tombstones` is for messages v0 and v1, which have no delete horizon."""
        if batch.last_offset >= self.map.end_offset:
            return batch.view
        kept = None
        if not is_aborted:
            horizon = batch.delete_horizon if isinstance(batch, RecordBatch) else None
            drop_tombstones = (
                drop_old_tombstones if not isinstance(batch, RecordBatch) else _has_come(horizon, self.now)
            )
            latest = self.map.latest

            def keep(offset: int, key: bytes | None, is_tombstone: bool) -> bool:
                return key is not None and latest.get(key, -1) <= offset and not (is_tombstone and drop_tombstones)

            kept = filter_batch(batch, keep, delete_horizon=self.now + self.delete_retention_ms)
        return self._empty(batch) if kept is None and isinstance(batch, RecordBatch) else kept

    def apply_to_marker(self, batch: RecordBatch, *, is_needed: bool) -> bytes | memoryview | None:
        """What is left of a marker; once its transaction has no batch left it gets a delete horizon, and goes then."""
        if is_needed or batch.last_offset >= self.map.end_offset:
            return batch.view
        if not batch.records_count or _has_come(batch.delete_horizon, self.now):
            return self._empty(batch)
        if batch.delete_horizon is not None:
            return batch.view
        return with_delete_horizon(batch, self.now + self.delete_retention_ms)

    def _empty(self, batch: RecordBatch) -> bytes | None:
        """A producer's last batch stays without its records: it tells the last sequence number, or the epoch."""
        return empty_batch(batch) if self._is_last_of_producer(batch) else None

    def _is_last_of_producer(self, batch: RecordBatch) -> bool:
        last = self.last_batches.get(batch.producer_id)
        return last is not None and last.is_in(batch)


def _has_come(horizon: int | None, now: int) -> bool:
    return horizon is not None and horizon <= now
