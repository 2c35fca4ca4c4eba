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

Which record is the last one is found out by reading those that were not compacted yet, the *dirty* ones, backwards: the
first record that is met with a key is the last one with it.  So a set of keys will do, and the offsets of the records
that stay come out in order.  Of a dirty batch only these are looked for then, and no key is asked for again; in clean
batches, which stand before them all, each key is looked up in the set.

What the set and the offsets may take is bounded by `log.cleaner.dedupe.buffer.size`.  Where the dirty records have more
keys than fit, the round ends earlier, and what lies behind stays dirty.

Source: Kafka's `Cleaner`, KIP-534 (delete horizon).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from operator import neg
from typing import NamedTuple

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import DEFAULT_LIMIT, Batch, RecordBatch
from hmb.records.filtering import empty_batch, filter_batch, keep_offsets, keys_of, with_delete_horizon
from hmb.storage.log_reading import aborted_transactions
from hmb.storage.producer_state import LastBatch
from hmb.storage.segment import Segment
from hmb.storage.transaction_index import AbortedTransaction

ENTRY_OVERHEAD = 112  # bytes: slots of a set, the object around a short key, its offset


class OffsetMap:
    """The keys of the dirty records from `begin_offset` up to `end_offset`, and the offset of the last record of each.

    Takes up to `max_bytes` of memory.  Batches come from the last one back, and decompress to `limit` bytes at most.
    """

    def __init__(self, max_bytes: int, begin_offset: int, end_offset: int, limit: int = DEFAULT_LIMIT) -> None:
        self.keys: set[bytes] = set()
        self.begin_offset = begin_offset
        self.end_offset = end_offset
        self.next_offset = end_offset  # batches before it may come
        self._offsets = array("q")  # they fall
        self._room = max_bytes
        self._limit = limit

    def add(self, batch: Batch) -> bool:
        """Note a batch's records; False where there is no room for it.  Raises KafkaError."""
        if self._room <= 0:
            return False
        keys, offsets = keys_of(batch, self._limit)
        if offsets and offsets[-1] >= self.next_offset:
            why = f"a batch up to offset {offsets[-1]} stands in front of one from {self.next_offset} on"
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, why)
        if news := set(keys).difference(self.keys):  # one look-up per record: what costs most in a round
            last = dict(zip(keys, offsets, strict=True))
            self._offsets.extend(sorted(map(last.__getitem__, news), reverse=True))
            self.keys |= news
            self._room -= ENTRY_OVERHEAD * len(news) + sum(map(len, news))
        self.next_offset = offsets[0] if offsets else self.next_offset
        return True

    def last_offsets(self, batch: RecordBatch) -> Sequence[int]:
        """Of a batch that was noted, the offsets of those records that are the last ones of their keys; they grow."""
        offsets = self._offsets
        first = bisect_left(offsets, -batch.last_offset, key=neg)
        return offsets[first : bisect_right(offsets, -batch.base_offset, first, key=neg)][::-1]

    def is_last(self, offset: int) -> bool:
        """Whether the record at this offset, whose batch was noted, is the last one of its key."""
        number = bisect_left(self._offsets, -offset, key=neg)
        return number < len(self._offsets) and self._offsets[number] == offset


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
    limit: int = DEFAULT_LIMIT  # of decompression, in bytes

    def apply(self, batch: Batch, *, is_aborted: bool, drop_old_tombstones: bool) -> bytes | memoryview | None:
        """What is left of a batch.  `drop_old_tombstones` is for messages v0 and v1, which have no delete horizon."""
        if batch.last_offset >= self.map.end_offset:
            return batch.view
        kept = None if is_aborted else self._rest(batch, drop_old_tombstones)
        return self._empty(batch) if kept is None and isinstance(batch, RecordBatch) else kept

    def _rest(self, batch: Batch, drop_tombstones: bool) -> bytes | memoryview | None:
        new_horizon = self.now + self.delete_retention_ms
        if isinstance(batch, RecordBatch):
            drop_tombstones = _has_come(batch.delete_horizon, self.now)
        if batch.last_offset < self.map.begin_offset:
            keys = self.map.keys
            return filter_batch(
                batch,
                lambda _, key, is_tombstone: not (key is None or key in keys or (is_tombstone and drop_tombstones)),
                delete_horizon=new_horizon,
                limit=self.limit,
            )
        if isinstance(batch, RecordBatch) and batch.has_all_records and not drop_tombstones:
            last = self.map.last_offsets(batch)
            return keep_offsets(batch, last, delete_horizon=new_horizon, limit=self.limit)
        is_last = self.map.is_last
        return filter_batch(
            batch,
            lambda offset, _, is_tombstone: is_last(offset) and not (is_tombstone and drop_tombstones),
            delete_horizon=new_horizon,
            limit=self.limit,
        )

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
