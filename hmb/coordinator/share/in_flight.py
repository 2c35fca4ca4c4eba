"""Tracks which records of a partition a share group has delivered, and to which member.

A *share-partition* is one partition that one share group reads. It has two offsets:
    share-partition start offset   the offset of the first record whose delivery is not complete
    next offset                    the offset after the last record that the group has delivered or skipped

The records *in flight* begin at the share-partition start offset, and end with the last record that the group
has delivered or skipped.

The delivery of all records below the share-partition start offset is complete. The group has not yet delivered
any record at or above the next offset. Each record in between has a delivery state (states.py) and a delivery
count.

Neighboring records often have the same state and the same count. `InFlightRecords` stores such records
together, as one *run*. In this example, there are three runs, and each record has been delivered once:
    offset     100 ......... 104   105 ......... 109   110 ......... 119   120
    state      Acquired by A       Acknowledged        Acquired by B       next offset
    count      1                   1                   1

For example, member A has acquired the records 100 to 104 for the first time. Member A accepts 100 to 102, and
releases 103 and 104. The delivery of all records below 103 is now complete, so the share-partition start offset
moves from 100 to 103. The next member that fetches receives 103 and 104. The delivery count of these two
records becomes 2.

The class `InFlightRecords` is a state machine without threads, clocks and disks. `now` is a time in ms from a clock
that never jumps.

Source: KIP-932; Kafka's `SharePartition`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

from hmb.coordinator.share.acknowledgement import Acknowledgement
from hmb.coordinator.share.states import DELIVERY_STATES, DeliveryEvent, DeliveryState
from hmb.protocol.errors import ErrorCode, KafkaError

_E = DeliveryEvent


class Run(NamedTuple):
    """Neighboring records with the same delivery state, from `first` to `last` (inclusive)."""

    first: int
    last: int
    state: DeliveryState
    delivery_count: int = 0
    member: str = ""
    deadline: int = 0  # the time (ms) at which the acquisition lock times out

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    def continues(self, other: Run) -> bool:
        """Return whether the next range of records, `other`, differs from this range only in the offsets."""
        return other._replace(first=self.first, last=self.last) == self


class StateBatch(NamedTuple):
    """A range of records with the same delivery state and count. The topic `__share_group_state` stores such ranges."""

    first: int
    last: int
    state: DeliveryState
    delivery_count: int


class Update(NamedTuple):
    """A change of a share-partition that the share coordinator must store.

    `batches` contains the records whose delivery state has changed. `complete_count` is the number of Acknowledged
    or Archived records at offset `start_offset` or above.
    """

    start_offset: int
    complete_count: int
    batches: Sequence[StateBatch]


class AcquireLimits(NamedTuple):
    """The limits for one call of `acquire`: how many records a member may acquire, and for how long.

    - `records` is the maximum number of records that the member gets.
    - `locks` is the maximum number of records in flight after this call. It includes the records of all members.
    - `lock_duration` is the time (ms) in which the member must acknowledge the records.

    If `is_strict` is false, the broker does not divide batches. The numbers of records can then be greater than
    `records` and `locks`.
    """

    records: int
    locks: int
    lock_duration: int
    is_strict: bool = False


class InFlightRecords:
    """The records in flight of one share-partition.

    The records are stored as runs. A run is a range of neighboring records with the same state.

    Invariants:
    - The runs are sorted, do not overlap, and leave no gap. Together, they contain the offsets from
      `start_offset` to `next_offset` - 1.
    - The first run is Available or Acquired, because `start_offset` is the offset of the first record whose
      delivery is not complete. The delivery of Acknowledged and Archived records is complete.
    - Only a run in the state Acquired has a member and a deadline.
    """

    def __init__(self, start_offset: int, stored: Iterable[StateBatch] = ()) -> None:
        """Restore the records in flight from the state that the share coordinator has stored.

        `stored` can have gaps, because the share coordinator does not store every state. A record in a gap was
        Available or Acquired before. After the restore, it is Available.
        """
        self.start_offset = self.next_offset = start_offset
        self._runs: list[Run] = []
        self._changed: list[tuple[int, int]] = []  # ranges (first, last) that are not stored yet
        self._stored_start = start_offset
        for batch in sorted(stored):
            if batch.first > self.next_offset:
                self._append(batch.first - 1, DeliveryState.AVAILABLE, 0)
            self._append(batch.last, batch.state, batch.delivery_count)
        self._advance()

    def _append(self, last: int, state: DeliveryState, count: int) -> None:
        if last >= self.next_offset:
            self._runs.append(Run(self.next_offset, last, state, count))
            self.next_offset = last + 1

    # -- the current records

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    @property
    def first_available(self) -> int:
        """The offset of the first record that a member can acquire. It is `next_offset` if no record is Available."""
        return next((run.first for run in self._runs if run.state is DeliveryState.AVAILABLE), self.next_offset)

    def can_acquire(self, locks: int) -> bool:
        """Return whether a member may acquire records.

        The result is True in two cases: a record is Available, or the number of records in flight is below the limit
        `locks`.
        """
        return self.first_available < self.next_offset or self.next_offset - self.start_offset < locks

    @property
    def next_deadline(self) -> int | None:
        """The earliest time (ms) at which an acquisition lock times out, or None if there is no lock.

        A member that acquires a record gets an acquisition lock on it. While the lock lasts, the group delivers the
        record to no other member.
        """
        return min((run.deadline for run in self._runs if run.member), default=None)

    @property
    def complete_count(self) -> int:
        """The number of records at or above the start offset that are Acknowledged or Archived."""
        return sum(run.size for run in self._runs if run.state.is_final)

    # -- acquire

    def acquire(
        self, member: str, batches: Sequence[range], limits: AcquireLimits, now: int, aborted: Sequence[range] = ()
    ) -> list[Run]:
        """Acquire records for a member, and return the acquired records as a list of runs.

        A `Run` is a range of neighboring records with the same delivery state and the same delivery count.

        Before this call, the caller has read batches from the log, beginning at the offset `first_available`. The
        list `batches` contains the range of offsets of each batch.

        `aborted` contains ranges of offsets that belong to aborted transactions. The method archives these offsets,
        so the group never delivers the records of these transactions.
        """
        self._archive_gap(batches[0].start)
        for skipped in aborted:
            self._append(skipped.stop - 1, DeliveryState.AVAILABLE, 0)
            self.archive(skipped.start, skipped.stop - 1)
        acquired: list[Run] = []
        left, deadline = limits.records, now + limits.lock_duration
        end = batches[-1].stop - 1
        for run in [run for run in self._runs if run.state is DeliveryState.AVAILABLE and run.first <= end]:
            if left <= 0:
                return acquired
            last = min(run.last, end, run.first + left - 1 if limits.is_strict else end)
            acquired += self._change(run.first, last, partial(_acquired, member=member, deadline=deadline))
            left -= last - run.first + 1
        room = min(left, limits.locks - (self.next_offset - self.start_offset))
        if room > 0 and end >= self.next_offset:
            first, last = self.next_offset, min(end, self.next_offset + room - 1)
            if not limits.is_strict:
                last = next(batch.stop - 1 for batch in batches if batch.stop > last)
            self._append(last, DeliveryState.AVAILABLE, 0)
            acquired += self._change(first, last, partial(_acquired, member=member, deadline=deadline))
        return acquired

    def _archive_gap(self, first: int) -> None:
        """Archive all offsets from `first_available` to `first` - 1 (inclusive).

        The caller has read the log from `first_available` on, and has found the first batch at `first`. So the log has
        no records at the archived offsets, for example because of compaction.
        """
        gap_start = self.first_available
        if first > self.next_offset:
            self._append(first - 1, DeliveryState.AVAILABLE, 0)
        if first > gap_start:
            self.archive(gap_start, first - 1)

    def archive(self, first: int, last: int) -> None:
        """Mark the offsets from `first` to `last` (inclusive) as Archived: the group skips these offsets.

        Either the log has no records at these offsets, or the records belong to an aborted transaction.
        """
        self._store_changes(first, last, partial(_archived, event=_E.GAP))
        self._advance()

    # -- acknowledge

    def acknowledge(
        self, member: str, batches: Sequence[Acknowledgement], *, limit: int, lock_duration: int, now: int
    ) -> None:
        """Handle the acknowledgements of a member for records that it has acquired.

        A member can accept, reject or release a record, or renew its lock on the record. The group delivers a released
        record again. But after `limit` deliveries, a released record becomes Archived, and is never delivered again.

        Raises INVALID_RECORD_STATE if the member has not acquired a record, and INVALID_REQUEST if the group has not
        delivered a record to any member yet. In both cases, no record changes.
        """
        current = [batch for batch in batches if batch.last >= self.start_offset]
        for batch in current:
            self._check_acquired(member, batch)
        for first, last, event in chain.from_iterable(batch.events() for batch in current):
            if event is _E.RENEW:
                self._change(first, last, partial(_after, event=event, member=member, deadline=now + lock_duration))
            elif event is _E.RELEASE:
                self._store_changes(first, last, partial(_released, event=event, limit=limit))
            else:
                self._store_changes(first, last, partial(_after, event=event))
        self._advance()

    def _check_acquired(self, member: str, batch: Acknowledgement) -> None:
        if batch.last >= self.next_offset:
            why = f"offset {batch.last} cannot be acknowledged: the group has not acquired it"
            raise KafkaError(ErrorCode.INVALID_REQUEST, why)
        for run in self._overlapping(max(batch.first, self.start_offset), batch.last):
            if run.member != member:
                why = f"the records {run.first} to {run.last} are {run.state.label}, and not acquired by this member"
                raise KafkaError(ErrorCode.INVALID_RECORD_STATE, why)

    # -- release

    def release(self, member: str, limit: int) -> None:
        """Release all records of a member whose share session ends.

        A record with `limit` or more deliveries becomes Archived instead (not delivered again).
        """
        for run in [run for run in self._runs if run.member == member]:
            self._store_changes(run.first, run.last, partial(_released, event=_E.RELEASE, limit=limit))
        self._advance()

    def time_out(self, now: int, limit: int) -> None:
        """Release each record whose acquisition lock has timed out.

        A record with `limit` or more deliveries becomes Archived instead (not delivered again).
        """
        for run in [run for run in self._runs if run.member and run.deadline <= now]:
            self._store_changes(run.first, run.last, partial(_released, event=_E.TIME_OUT, limit=limit))
        self._advance()

    def move_start_offset(self, log_start_offset: int) -> None:
        """Skip the records below `log_start_offset`, because the log has deleted them.

        The share-partition start offset moves to `log_start_offset` or above. If a deleted record was in flight, its
        state becomes Archived: the group never delivers it again.
        """
        if log_start_offset <= self.start_offset:
            return
        if log_start_offset > self.next_offset:
            self._append(log_start_offset - 1, DeliveryState.AVAILABLE, 0)
        self._store_changes(self.start_offset, log_start_offset - 1, partial(_archived, event=_E.DELETE))
        self._advance()

    # -- changes

    def take_update(self) -> Update | None:
        """Return the changes that the share coordinator must store, or None if there are no such changes.

        Each call returns only the changes since the previous call. The result never contains the state Acquired. After
        a restart of the broker, an acquired record is Available again.
        """
        if not self._changed and self._stored_start == self.start_offset:
            return None
        batches: list[StateBatch] = []
        for first, last in sorted(self._changed):
            for run in self._overlapping(max(first, self.start_offset), last):
                if run.state is not DeliveryState.ACQUIRED:
                    cut = StateBatch(max(run.first, first), min(run.last, last), run.state, run.delivery_count)
                    batches.append(cut)
        self._changed.clear()
        self._stored_start = self.start_offset
        return Update(self.start_offset, self.complete_count, joined(batches))

    def _store_changes(self, first: int, last: int, change: Callable[[Run], Run]) -> None:
        self._change(first, last, change)
        self._changed.append((first, last))

    def _change(self, first: int, last: int, change: Callable[[Run], Run]) -> list[Run]:
        first = max(first, self.start_offset)
        if last < first:
            return []
        low, high = self._split(first), self._split(last + 1)
        changed = _merged(map(change, self._runs[low:high]))
        self._runs[low:high] = changed
        before, after = max(0, low - 1), low + len(changed) + 1
        self._runs[before:after] = _merged(self._runs[before:after])
        return changed

    def _split(self, offset: int) -> int:
        """Split a range of records (a run) so that a run begins at `offset`. Return the index of this run.

        A run is a range of records with the same state. For example, `_split(105)` splits the run 100 to 109 into 100
        to 104 and 105 to 109. If `offset` is above all runs, the result is the number of runs.
        """
        position = bisect_right(self._runs, offset, key=lambda run: run.first) - 1
        run = self._runs[position] if position >= 0 else None
        if run is None or offset > run.last:
            return position + 1
        if run.first == offset:
            return position
        self._runs[position : position + 1] = [run._replace(last=offset - 1), run._replace(first=offset)]
        return position + 1

    def _overlapping(self, first: int, last: int) -> Iterator[Run]:
        position = max(0, bisect_right(self._runs, first, key=lambda run: run.first) - 1)
        while position < len(self._runs) and self._runs[position].first <= last:
            if self._runs[position].last >= first:
                yield self._runs[position]
            position += 1

    def _advance(self) -> None:
        """Move the start offset to the first record whose delivery is not complete."""
        complete = 0
        while complete < len(self._runs) and self._runs[complete].state.is_final:
            complete += 1
        del self._runs[:complete]
        self.start_offset = self._runs[0].first if self._runs else self.next_offset


def _after(run: Run, event: DeliveryEvent, *, delivery_count: int = -1, member: str = "", deadline: int = 0) -> Run:
    """Return a copy of `run` in the delivery state that follows after `event`.

    A run is a range of records in one delivery state. `DELIVERY_STATES` defines the next state. The copy contains
    `member` and `deadline`. If `delivery_count` is negative, the copy keeps the delivery count of `run`.
    """
    count = run.delivery_count if delivery_count < 0 else delivery_count
    return Run(run.first, run.last, DELIVERY_STATES.next(run.state, event), count, member, deadline)


def _acquired(run: Run, member: str, deadline: int) -> Run:
    return _after(run, _E.ACQUIRE, delivery_count=run.delivery_count + 1, member=member, deadline=deadline)


def _released(run: Run, event: DeliveryEvent, limit: int) -> Run:
    return _after(run, _E.REACH_LIMIT if run.delivery_count >= limit else event)


def _archived(run: Run, event: DeliveryEvent) -> Run:
    return run if run.state.is_final else _after(run, event)


def _merged(runs: Iterable[Run]) -> list[Run]:
    merged: list[Run] = []
    for run in runs:
        if merged and merged[-1].continues(run):
            merged[-1] = merged[-1]._replace(last=run.last)
        else:
            merged.append(run)
    return merged


def joined(batches: Iterable[StateBatch]) -> list[StateBatch]:
    """Join neighboring batches that have the same state and delivery count, and return the resulting batches."""
    together: list[StateBatch] = []
    for batch in batches:
        if together and together[-1].last + 1 == batch.first and together[-1][2:] == batch[2:]:
            together[-1] = together[-1]._replace(last=batch.last)
        else:
            together.append(batch)
    return together
