"""Stores the share-partitions that this broker leads. The threads of many connections use them at the same time.

Each `SharePartition` has a lock, so that only one thread at a time changes the share-partition's records in
flight (in_flight.py). The share coordinator (coordinator.py) stores each change on disk.

An *acquisition lock* is not a lock between threads. It reserves a record for the member that has acquired the
record: no other member can acquire it. If the member does not acknowledge the record in time, the lock times
out, and a timer calls `SharePartition.wake`. The record then becomes Available again, unless the group has
already delivered it too often.

The field `SharePartition.watchers` contains the threads that wait for records of the share-partition. When
records may be Available again, the `SharePartition` wakes all these threads.

A method whose name begins with `begin_` puts its change into the journal's queue, and does not wait for the
disk. The caller then calls `finish`, which waits until the change is on disk. During this wait, the caller
holds no lock. A caller that acknowledges records of several partitions first calls `begin_acknowledge` for each
partition, and only then `finish`. The journal can then write all these changes with one sync.

For example, member A acknowledges the records 100 to 104 of orders-0. The thread of its connection takes the lock,
changes the state of these records to Acknowledged, adds one record to the journal's queue, and releases the lock.
Member B can now acquire other records, while A's thread waits for the disk.

If the share coordinator cannot store a change, the state in memory differs from the state on disk. The broker
then discards the share-partition from memory, and the next request loads the stored state. The stored state
does not show which records were Acquired, so these records become Available again. The broker can therefore
deliver a record twice, but no record is lost.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from hmb.coordinator.group_timer import GroupTimer
from hmb.coordinator.journal.partition import QueuedRecords
from hmb.coordinator.share.acknowledgement import Acknowledgement
from hmb.coordinator.share.coordinator import ShareCoordinator, SharePartitionId
from hmb.coordinator.share.in_flight import AcquireLimits, InFlightRecords, Run, Update
from hmb.coordinator.share.settings import ShareGroupSettings
from hmb.coordinator.share.state_records import NO_START_OFFSET
from hmb.coordinator.share.stored_state import ShareState
from hmb.protocol.errors import KafkaError
from hmb.storage.clock import monotonic_ms
from hmb.storage.log import Log
from hmb.storage.watchers import Watchers

LOGGER = logging.getLogger(__name__)


class ReadBatches(Protocol):
    """The record batches that a fetch has read from a log.

    `offsets` contains the range of offsets of each batch. `aborted` is empty if the group also reads uncommitted
    records. Otherwise it contains the offset ranges of aborted transactions. The group must not deliver their
    records.
    """

    @property
    def offsets(self) -> Sequence[range]: ...

    @property
    def aborted(self) -> Sequence[range]: ...


ReadT = TypeVar("ReadT", bound=ReadBatches)


class Acquisition(NamedTuple):
    """A member's request for at most `records` records.

    If `is_strict` is false, the broker does not divide record batches. The member can then get more records.
    """

    member: str
    records: int
    is_strict: bool


class SharePartition:
    """One share-partition: a partition that a share group reads. Thread-safe.

    - `watchers` contains one watcher for each thread that waits for records of this share-partition.
    - `due` is the time (ms) at which the timer calls `wake`, or None if no call is planned. No acquisition lock
      times out before `due`.

    An acknowledgement can end the acquisition lock of a record, but it does not change `due`. If no lock has
    timed out when the timer calls `wake`, `wake` changes no record.
    """

    def __init__(
        self,
        id: SharePartitionId,
        log: Log,
        state: ShareState,
        coordinator: ShareCoordinator,
        settings: Callable[[], ShareGroupSettings],
        timer: GroupTimer,
        clock: Callable[[], int],
    ) -> None:
        self.id, self.log = id, log
        self.state_epoch = state.state_epoch
        self.watchers = Watchers()
        self.due: int | None = None
        self.is_stale = False  # whether the broker must load the stored state again, for example after a failed write
        self._coordinator = coordinator
        self._settings = settings
        self._timer = timer
        self._clock = clock
        # This lock guards `_records`. A thread that holds this lock can take the locks of the log, of the share
        # coordinator and of the timer. It must release this lock before it waits for the disk.
        self.lock = threading.Lock()
        self._records = InFlightRecords(state.start_offset, state.batches)

    def begin_acquire(
        self, wanted: Acquisition, read: Callable[[int], ReadT | None]
    ) -> tuple[list[Run], ReadT | None, QueuedRecords | None]:
        """Acquire records for a member. Return a tuple of three values.

        - The first value is a list of runs: ranges of acquired records with the same delivery count.
        - The second value is the result of `read`, or None if nothing was read. The method calls `read` with the
          offset of the first record that a member can acquire.
        - The third value is a queued change of the stored state, for example a new start offset. It is None if
          there is no change to store.

        The caller must pass the third value to `finish`, which waits until the change is on disk. The broker never
        stores the state Acquired.
        """
        settings, now = self._settings(), self._clock()
        limits = AcquireLimits(wanted.records, settings.max_locks, settings.lock_duration, wanted.is_strict)
        with self.lock:
            self._records.time_out(now, settings.delivery_limit)
            self._records.move_start_offset(self.log.log_start_offset)
            found = None
            acquired: list[Run] = []
            if self._records.can_acquire(settings.max_locks):
                found = read(self._records.first_available)
            if found is not None:
                acquired = self._records.acquire(wanted.member, found.offsets, limits, now, found.aborted)
            return acquired, found, self._enqueue()

    def begin_acknowledge(self, member: str, batches: Sequence[Acknowledgement]) -> QueuedRecords | None:
        """Acknowledge records that a member has acquired. Return the change that the caller must pass to `finish`.

        Raises INVALID_RECORD_STATE, INVALID_REQUEST.
        """
        settings, now = self._settings(), self._clock()
        with self.lock:
            self._records.time_out(now, settings.delivery_limit)
            try:
                self._records.acknowledge(
                    member, batches, limit=settings.delivery_limit, lock_duration=settings.lock_duration, now=now
                )
            finally:
                queued = self._enqueue()
        self.watchers.wake_all()
        return queued

    def begin_release(self, member: str) -> QueuedRecords | None:
        """Release all records of a member whose share session ends. The caller must pass the result to `finish`."""
        with self.lock:
            self._records.release(member, self._settings().delivery_limit)
            queued = self._enqueue()
        self.watchers.wake_all()
        return queued

    def finish(self, queued: QueuedRecords | None) -> None:
        """Wait until the change `queued` is on disk. If `queued` is None, return immediately.

        Raises KafkaError if the write fails. The records in memory then differ from the stored state, so the broker
        must load the stored state again.
        """
        if queued is not None:
            try:
                self._coordinator.finish(self.id, queued)
            except KafkaError:
                self.is_stale = True
                raise

    def wake(self) -> None:
        """Release the records whose acquisition locks have timed out. The timer calls this method."""
        with self.lock:
            self._records.time_out(self._clock(), self._settings().delivery_limit)
            queued = self._enqueue()
        self.watchers.wake_all()
        self.finish(queued)

    def _enqueue(self) -> QueuedRecords | None:
        """Put all new changes into the journal's queue. Set the timer to the next timeout of an acquisition lock.

        The caller must hold the lock of the share-partition.
        """
        self._timer.schedule(self, self._records.next_deadline)
        update = self._records.take_update()
        if update is None or self.is_stale:
            return None
        try:
            return self._coordinator.begin_write(self.id, self.state_epoch, self.log.leader_epoch, update)
        except KafkaError:
            self.is_stale = True
            raise


class SharePartitions:
    """The table of all share-partitions that members read. Thread-safe."""

    def __init__(
        self,
        coordinator: ShareCoordinator,
        settings: Callable[[str], ShareGroupSettings],
        first_offset: Callable[[Log, str], int],
        timer: GroupTimer,
        clock: Callable[[], int] = monotonic_ms,
    ) -> None:
        """Create an empty table.

        The function `settings` takes a group id, and returns the settings of this group.

        The table calls the function `first_offset` when a group reads a log for the first time. The function takes the
        log and the group's setting `share.auto.offset.reset`. It returns the offset at which the group begins to read.
        """
        self._coordinator = coordinator
        self._settings = settings
        self._first_offset = first_offset
        self._timer = timer
        self._clock = clock
        # A thread holds `_lock` while it loads or discards a share-partition, so two threads never load the same
        # share-partition at the same time. During a load, the thread also takes the share coordinator's lock. If the
        # group has never read the partition, the thread waits until the group's start offset is on disk.
        self._lock = threading.Lock()
        self._partitions: dict[SharePartitionId, SharePartition] = {}

    def get(self, id: SharePartitionId, log: Log) -> SharePartition:
        """Return a share-partition, and load its state if necessary. Raises KafkaError."""
        known = self._partitions.get(id)
        if known is not None and not known.is_stale and known.log is log:
            return known
        with self._lock:
            known = self._partitions.get(id)
            if known is None or known.is_stale or known.log is not log:
                self._partitions[id] = known = self._load(id, log)
            return known

    def _load(self, id: SharePartitionId, log: Log) -> SharePartition:
        state = self._coordinator.read(id, log.leader_epoch)
        if state.start_offset == NO_START_OFFSET:
            # Store the start offset at once. Otherwise, the setting `latest` would mean a later end of the log after a
            # restart, and the group would skip records.
            start = self._first_offset(log, self._settings(id.group_id).offset_reset)
            update = Update(start, 0, ())
            self._coordinator.finish(id, self._coordinator.begin_write(id, state.state_epoch, log.leader_epoch, update))
            state = self._coordinator.read(id, log.leader_epoch)
        return SharePartition(
            id, log, state, self._coordinator, lambda: self._settings(id.group_id), self._timer, self._clock
        )

    def find(self, id: SharePartitionId) -> SharePartition | None:
        """Return a share-partition, or None if it is not in memory."""
        return self._partitions.get(id)

    def discard(self, ids: Iterable[SharePartitionId]) -> None:
        """Remove share-partitions from memory. Call this method before you change or delete their stored states."""
        with self._lock:
            for id in ids:
                if (gone := self._partitions.pop(id, None)) is not None:
                    gone.is_stale = True
                    gone.watchers.wake_all()
