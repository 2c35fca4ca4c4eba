"""The rule of compaction: of all records with the same key, the log keeps the last one.

A compacted log stores the changes of a table: each record sets the value of one key. When a reader has read the log
from its beginning to its end, the reader knows the last value of each key. Compaction drops records but never changes
offsets, so gaps between offsets remain.

A *tombstone* is a record without a value, which deletes its key. After its first compaction, a tombstone stays in the
log for `delete.retention.ms`, so that slow readers can read it. The end of this time is the tombstone's *delete
horizon*. The header of the batch contains the delete horizon.

Compaction drops a record in the following cases. It checks the cases in this order:
1. The transaction of the record was aborted. A record of an aborted transaction does not replace an older record.
2. The record has no key. This can only happen if the record was appended before the topic became a compacted topic.
3. The log has a later record with the same key.
4. The record is a tombstone, and the delete horizon of its batch has passed.

A *marker* is the record that ends a transaction. The marker stays as long as the log has a batch of this transaction.
When the log has no such batch any more, the marker stays for another `delete.retention.ms`, like a tombstone.

*Dirty* records were not compacted yet. *Clean* records were already compacted, and have lower offsets than all dirty
records. One compaction of a log is a *round*. A round reads the log twice: the first pass finds the last record of each
key, and the second pass copies the records that stay.

The first pass reads the dirty records from the last batch to the first batch. So when it finds a key for the first
time, it has found the last record with this key. It adds the key to a set, and the offset of this record to a list.

The second pass keeps a dirty record only if its offset is in the list: it is the last record with its key. The
second pass drops a clean record if its key is in the set, because a later (dirty) record has this key.

The setting `log.cleaner.dedupe.buffer.size` limits the memory for the set of keys and the list of offsets. If
the memory is too small, a round covers only the oldest dirty records. The others wait for a later round.

A batch can contain records that compaction cannot read, although the CRC of the batch is correct. For example, before
the topic was compacted, a producer wrote records with wrong lengths, or more than MAX_BATCH_RECORDS records in one
batch. Compaction copies such a batch unchanged, and continues with the next batch.

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

from hmb.protocol.errors import KafkaError, corrupt_message
from hmb.records import DEFAULT_LIMIT, Batch, RecordBatch
from hmb.records.filtering import empty_batch, filter_batch, keep_offsets, keys_of, with_delete_horizon
from hmb.storage.log_reading import aborted_transactions
from hmb.storage.producer_state import LastBatch
from hmb.storage.segment import Segment
from hmb.storage.transaction_index import AbortedTransaction

# An `OffsetMap` stores each key as a `bytes` object in a set, and the key's offset in an array. So each key uses 112
# bytes of memory in addition to its own bytes.
ENTRY_OVERHEAD = 112


class OffsetMap:
    """Stores the keys of the dirty (not yet compacted) records, and the last offset of each key.

    The dirty records have the offsets from `begin_offset` to `end_offset` - 1. The caller adds their batches in
    reverse order: the last batch first. The map accepts batches until it uses `max_bytes` of memory.

    If a batch has more than `limit` bytes after decompression, the map stores an error instead of the batch's keys.
    """

    def __init__(self, max_bytes: int, begin_offset: int, end_offset: int, limit: int = DEFAULT_LIMIT) -> None:
        self.keys: set[bytes] = set()
        self.begin_offset = begin_offset
        self.end_offset = end_offset
        self.next_offset = end_offset  # the next batch that `add` gets must end below this offset
        self.unreadable: dict[int, KafkaError] = {}  # errors of batches that cannot be read, by last offset
        self._offsets = array("q")  # the last offset of each key, in descending order
        self._room = max_bytes
        self._limit = limit

    def add(self, batch: Batch) -> bool:
        """Add the keys of a batch, and return True. If the map's memory is used up, return False instead.

        The caller must add the batches in descending order of their offsets. Otherwise, the method raises
        CORRUPT_MESSAGE.

        If a batch cannot be read, the method adds no keys, stores the error in `unreadable`, and returns True.
        """
        if self._room <= 0:
            return False
        if batch.last_offset >= self.next_offset:
            why = f"a batch up to offset {batch.last_offset} precedes one from {self.next_offset} on"
            raise corrupt_message(why)
        try:
            keys, offsets = keys_of(batch, self._limit)
        except KafkaError as error:
            self.unreadable[batch.last_offset], self.next_offset = error, batch.last_offset
            return True
        if news := set(keys).difference(self.keys):  # This line takes most of the time of a compaction.
            last = dict(zip(keys, offsets, strict=True))
            self._offsets.extend(sorted(map(last.__getitem__, news), reverse=True))
            self.keys |= news
            self._room -= ENTRY_OVERHEAD * len(news) + sum(map(len, news))
        self.next_offset = offsets[0] if offsets else self.next_offset
        return True

    def last_offsets(self, batch: RecordBatch) -> Sequence[int]:
        """Return the offsets of those records in `batch` whose keys do not occur later in the log.

        The offsets are in ascending order.
        """
        offsets = self._offsets
        first = bisect_left(offsets, -batch.last_offset, key=neg)
        return offsets[first : bisect_right(offsets, -batch.base_offset, first, key=neg)][::-1]

    def is_last(self, offset: int) -> bool:
        """Return whether the record at `offset` is the last record with its key.

        The caller has already passed the record's batch to `add`.
        """
        number = bisect_left(self._offsets, -offset, key=neg)
        return number < len(self._offsets) and self._offsets[number] == offset


class CleanedTransactionMetadata:
    """Decides for each batch of records in a log whether the batch belongs to an aborted transaction.

    Before each segment, the caller calls `enter`, which looks up aborted transactions in the transaction indexes.
    Then the caller takes the segment's batches in offset order. It passes each marker (a record that ends a
    transaction) to `end`, and each other batch to `is_aborted`.
    """

    def __init__(self) -> None:
        self._known_to = 0  # transactions that begin below this offset were looked up
        self._coming: deque[AbortedTransaction] = deque()  # aborted transactions whose first batch was not yet read
        self._aborted: dict[int, AbortedTransaction] = {}  # producer id -> transaction whose marker was not read yet
        self._with_batches: set[int] = set()  # producers whose open transaction has batches in the log

    def enter(self, segments: Sequence[Segment], end_offset: int) -> None:
        """Look up the aborted transactions with records in the first segment of `segments`.

        This segment ends at `end_offset`. `segments` also contains all later segments, because a transaction can begin
        in the first segment and end with a marker in a later segment.
        """
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
    """A transaction whose marker was read. Compaction keeps the marker while the log has batches of the transaction."""

    has_batches: bool
    aborted: AbortedTransaction | None


@dataclass(slots=True)
class Compaction:
    """The rule that decides which records a compaction keeps.

    The caller passes each batch to `apply` or `apply_to_marker`, in the order of the log.

    If a batch cannot be read, the caller keeps the batch and sets `is_blind` to True. The compaction then keeps
    even old tombstones (records that delete their keys), unless a newer record has the same key. Without such a
    tombstone, an old value in the unreadable batch could become valid again.
    """

    map: OffsetMap
    last_batches: dict[int, LastBatch]  # the last batch of each producer, by producer id
    now: int  # time of the compaction in ms
    delete_retention_ms: int
    limit: int = DEFAULT_LIMIT  # limit (bytes) of a batch's records after decompression
    is_blind: bool = False

    def apply(self, batch: Batch, *, is_aborted: bool, drop_old_tombstones: bool) -> bytes | memoryview | None:
        """Return the batch with only the records that stay, or None if the whole batch is dropped.

        A tombstone in a record batch (v2) is dropped when the delete horizon in the batch's header has passed. Messages
        v0 and v1 have no delete horizon. Their tombstones are dropped if their segment is old enough
        (`drop_old_tombstones`).

        Neither rule applies if compaction has found an unreadable batch (`self.is_blind`). This batch may contain older
        values of the tombstones' keys.

        Raises KafkaError if the batch cannot be read.
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
            drop_tombstones = _has_passed(batch.delete_horizon, self.now)
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
        """Return the batch of a transaction marker after compaction, or None if compaction drops the batch.

        A marker is a record that ends a transaction. It is the only record of its batch.

        - The batch stays unchanged in two cases: the log still has other batches of the transaction (`is_needed` is
          True), or the batch comes after the offsets that this compaction covers.
        - Otherwise, compaction adds a delete horizon (a time in ms) to the batch, unless the batch already has one.
        - When the delete horizon has passed, a later compaction drops the batch. But it keeps the header of
          a producer's last batch.

        Raises KafkaError if the batch cannot be decoded.
        """
        if is_needed or batch.last_offset >= self.map.end_offset:
            return batch.view
        if not batch.records_count or _has_passed(batch.delete_horizon, self.now):
            return self._empty(batch)
        if batch.delete_horizon is not None:
            return batch.view
        return with_delete_horizon(batch, self.now + self.delete_retention_ms)

    def _empty(self, batch: RecordBatch) -> bytes | None:
        """Return `batch` without its records if `batch` is a producer's last batch. Otherwise, return None.

        The broker reads the producer's epoch and last sequence number from the header of this batch, so compaction must
        keep the header.
        """
        return empty_batch(batch) if self._is_last_of_producer(batch) else None

    def _is_last_of_producer(self, batch: RecordBatch) -> bool:
        last = self.last_batches.get(batch.producer_id)
        return last is not None and last.is_in(batch)


def _has_passed(horizon: int | None, now: int) -> bool:
    return horizon is not None and horizon <= now
