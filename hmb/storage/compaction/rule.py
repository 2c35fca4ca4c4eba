"""The rule of compaction: of all records with the same key, the log keeps the last one.

A compacted log is a table in the form of its changes. A reader that starts at its beginning knows the last value of
each key at its end. Compaction never changes offsets, so it leaves gaps. A record without a value, a *tombstone*,
deletes its key. A tombstone stays for `delete.retention.ms` after its first compaction, so that slow readers get it.

Compaction drops a record in these cases, in this order:

1. Its transaction was aborted. Such a record does not replace an older one.
2. It has no key. Only a record that was appended before the topic was compacted has no key.
3. The map has a later record with its key.
4. It is a tombstone, and the delete horizon of its batch has passed.

A transaction's marker stays while the log has a batch of the transaction, and then for `delete.retention.ms`, as a
tombstone does.

A round reads the *dirty* records, those that were not compacted yet, backwards. The first record that it meets with a
key is the last one with that key. So a set of keys is enough, and the round finds the offsets of the kept records in
order. The second pass selects these offsets from the dirty batches, without reading their keys again. Clean batches
precede all dirty batches. The second pass looks up each key of a clean batch in the set.

`log.cleaner.dedupe.buffer.size` limits the memory of the set and the offsets. If the dirty records have more keys, the
round ends earlier, and the records after its end stay dirty.

A batch may have a right CRC and unreadable records: before the topic was compacted, its producer wrote wrong lengths,
or more records than MOST_RECORDS of filtering.py. Compaction keeps such a batch byte for byte, and goes on.

Source: Kafka's `Cleaner`; KIP-534 (delete horizon).
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

ENTRY_OVERHEAD = 112  # bytes for each key: slots of the set, the key's object, the offset


class OffsetMap:
    """The keys of the dirty records from `begin_offset` up to `end_offset`, and the offset of the last record of each.

    The map takes up to `max_bytes` of memory. Batches are added from the last one to the first one. A batch may
    decompress to `limit` bytes at most.
    """

    def __init__(self, max_bytes: int, begin_offset: int, end_offset: int, limit: int = DEFAULT_LIMIT) -> None:
        self.keys: set[bytes] = set()
        self.begin_offset = begin_offset
        self.end_offset = end_offset
        self.next_offset = end_offset  # the next batch to be added ends below this offset
        self.unreadable: dict[int, KafkaError] = {}  # errors of batches without readable keys, by last offset
        self._offsets = array("q")  # offsets of the last record of each key, in descending order
        self._room = max_bytes
        self._limit = limit

    def add(self, batch: Batch) -> bool:
        """Add the keys of a batch's records. Return False if the map would need too much memory.

        A batch that cannot be read adds no keys, but is remembered as `unreadable`. Raises CORRUPT_MESSAGE if the
        offsets of the log are not in ascending order.
        """
        if self._room <= 0:
            return False
        if batch.last_offset >= self.next_offset:
            why = f"a batch up to offset {batch.last_offset} precedes one from {self.next_offset} on"
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, why)
        try:
            keys, offsets = keys_of(batch, self._limit)
        except KafkaError as error:
            self.unreadable[batch.last_offset], self.next_offset = error, batch.last_offset
            return True
        if news := set(keys).difference(self.keys):  # The look-ups take most of a round's time.
            last = dict(zip(keys, offsets, strict=True))
            self._offsets.extend(sorted(map(last.__getitem__, news), reverse=True))
            self.keys |= news
            self._room -= ENTRY_OVERHEAD * len(news) + sum(map(len, news))
        self.next_offset = offsets[0] if offsets else self.next_offset
        return True

    def last_offsets(self, batch: RecordBatch) -> Sequence[int]:
        """Return the offsets of the records in `batch` that are the last ones with their keys. They ascend."""
        offsets = self._offsets
        first = bisect_left(offsets, -batch.last_offset, key=neg)
        return offsets[first : bisect_right(offsets, -batch.base_offset, first, key=neg)][::-1]

    def is_last(self, offset: int) -> bool:
        """Return whether the record at this offset is the last one with its key. Its batch was added before."""
        number = bisect_left(self._offsets, -offset, key=neg)
        return number < len(self._offsets) and self._offsets[number] == offset


class Transactions:
    """Decides, for each batch of a log in order, whether its records belong to an aborted transaction.

    Before the batches of a segment are read, `enter` looks up their aborted transactions in the transaction indexes.
    """

    def __init__(self) -> None:
        self._known_to = 0  # aborted transactions that begin before this offset were looked up
        self._coming: deque[AbortedTransaction] = deque()  # aborted transactions that begin later, by first offset
        self._aborted: dict[int, AbortedTransaction] = {}  # transactions before their marker, by producer id
        self._with_batches: set[int] = set()  # producer ids whose open transaction still has batches

    def enter(self, segments: Sequence[Segment], end_offset: int) -> None:
        """Prepare for the batches of the first segment, up to `end_offset`. Their markers may be in later segments."""
        found = aborted_transactions(segments, segments[0].base_offset, end_offset)
        news = [each for each in found if each.first_offset >= self._known_to]
        self._coming.extend(sorted(news, key=lambda transaction: transaction.first_offset))
        self._known_to = end_offset

    def is_aborted(self, batch: Batch) -> bool:
        """Return whether a batch of records belongs to an aborted transaction."""
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
    """A transaction at its marker. Compaction keeps the marker while the log has batches of the transaction."""

    has_batches: bool
    aborted: AbortedTransaction | None


@dataclass(slots=True)
class Compaction:
    """The rule, with the data that it needs. It is applied to the batches of a log in their order.

    Invariant: `is_blind` is True after a batch was kept that cannot be read. This batch may contain an older value of
    any key. If a later tombstone were dropped, this value would be the last one again.
    """

    map: OffsetMap
    last_batches: dict[int, LastBatch]  # the last batch of each producer, by producer id
    now: int  # time of the compaction in ms
    delete_retention_ms: int
    limit: int = DEFAULT_LIMIT  # bytes that a batch may decompress to
    is_blind: bool = False

    def apply(self, batch: Batch, *, is_aborted: bool, drop_old_tombstones: bool) -> bytes | memoryview | None:
        """Return a batch without its dropped records; None if nothing is kept. Raises KafkaError if it is unreadable.

        `drop_old_tombstones` is for messages v0 and v1, which have no delete horizon.
        """
        if batch.last_offset >= self.map.end_offset:
            return batch.view
        if batch.last_offset in self.map.unreadable:
            raise self.map.unreadable[batch.last_offset]
        kept = None if is_aborted else self._rest(batch, drop_old_tombstones)
        return self._empty(batch) if kept is None and isinstance(batch, RecordBatch) else kept

    def _rest(self, batch: Batch, drop_tombstones: bool) -> bytes | memoryview | None:
        new_horizon = self.now + self.delete_retention_ms
        if isinstance(batch, RecordBatch):
            drop_tombstones = _has_come(batch.delete_horizon, self.now)
        drop_tombstones = drop_tombstones and not self.is_blind
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
        """Return the batch of a marker, with or without its record; None if compaction drops it. Raises KafkaError.

        After the last batch of its transaction was dropped, the marker gets a delete horizon. Then it is dropped, too.
        """
        if is_needed or batch.last_offset >= self.map.end_offset:
            return batch.view
        if not batch.records_count or _has_come(batch.delete_horizon, self.now):
            return self._empty(batch)
        if batch.delete_horizon is not None:
            return batch.view
        return with_delete_horizon(batch, self.now + self.delete_retention_ms)

    def _empty(self, batch: RecordBatch) -> bytes | None:
        """Return the batch without its records if it has the last sequence number of its producer; else None."""
        return empty_batch(batch) if self._is_last_of_producer(batch) else None

    def _is_last_of_producer(self, batch: RecordBatch) -> bool:
        last = self.last_batches.get(batch.producer_id)
        return last is not None and last.is_in(batch)


def _has_come(horizon: int | None, now: int) -> bool:
    return horizon is not None and horizon <= now
