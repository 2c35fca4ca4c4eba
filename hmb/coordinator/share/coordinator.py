"""The share coordinator: it stores the state of share-partitions in `__share_group_state`.

A share-partition is one partition that one share group reads. The state of a share-partition contains its start
offset and the delivery states of its records. The share coordinator stores this state for three users:
- The group coordinator creates the state when a member of the group first subscribes to the topic. It deletes
  the state when the group or the topic is deleted.
- The leader of the partition loads the state, and then writes changes, for example an acknowledgement.
- A client asks for the start offset (DescribeShareGroupOffsets).

In Kafka, the group coordinator, the leader of a partition and the share coordinator can run on three different brokers.
The group coordinator and the leader send requests to the share coordinator (the five APIs with the numbers 83 to 87).
In HMB, all three run in one process, so the group coordinator and the leader call methods of `ShareCoordinator`. HMB
also answers the five requests.

A writer can be out of date: for example, it does not know yet that the partition has a new leader. Each write therefore
contains two epochs. The *state epoch* increases when an administrator changes the start offset. The *leader epoch*
increases when the partition has a new leader. The share coordinator refuses a write if one of these epochs is less than
the stored epoch.

When the state of a share-partition changes, the coordinator first changes the state in memory, and then waits for the
journal. If the write to the journal fails, the change is in memory but not in the journal. The next record of this
share-partition is then not an update but a snapshot, which contains the complete state in memory. So the snapshot also
contains the change whose write failed.

For example, the share group "workers" reads the partition orders-0, and a member accepts the records 105 to 109. The
coordinator notes in memory that these five records are acknowledged. For all five together, it writes only one
ShareUpdate record of about 60 bytes to the journal.

Source: KIP-932; Kafka's `ShareCoordinatorService`, `ShareCoordinatorShard`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hmb.coordinator.journal.loading import all_records
from hmb.coordinator.journal.partition import QueuedRecords
from hmb.coordinator.journal.records import Key, KeyAndValue
from hmb.coordinator.journal.writing import Journal
from hmb.coordinator.share.in_flight import Update
from hmb.coordinator.share.state_records import NO_START_OFFSET, STATE_KEYS, ShareSnapshotKey, ShareUpdateKey
from hmb.coordinator.share.stored_state import ShareState, replayed, snapshot_record, tombstone, update_record
from hmb.protocol.enums import NO_LEADER_EPOCH
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import PartitionId
from hmb.units import now_ms
from hmb.uuids import encode_uuid

LOGGER = logging.getLogger(__name__)
ENCODED_UUID_LENGTH = 22  # characters
UPDATES_BEFORE_PRUNING = 1_000  # `prune` handles a journal partition only after this number of new records


class SharePartitionId(NamedTuple):
    """Identifies a share-partition: a share group, and one partition that this group reads."""

    group_id: str
    partition: PartitionId

    def __str__(self) -> str:
        """Return the key of the share-partition: `group-id:topic-id:partition`.

        The hash of this key selects the partition of `__share_group_state` in which the state is stored.
        """
        return f"{self.group_id}:{encode_uuid(self.partition.topic_id)}:{self.partition.partition}"


def check_share_key(key: str) -> None:
    """Raise INVALID_REQUEST if `key` is not the text of a `SharePartitionId`."""
    group_id, topic_id, partition = (["", "", "", *key.rsplit(":", 2)])[-3:]
    if not group_id or len(topic_id) != ENCODED_UUID_LENGTH or not partition.isdecimal():
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{key[:100]!r} is not group-id:topic-id:partition")


class ShareCoordinator:
    """Stores the states of all share-partitions. Thread-safe."""

    def __init__(self, journal: Journal, *, updates_per_snapshot: int, clock: Callable[[], int] = now_ms) -> None:
        """Create a coordinator. `clock` returns the time in ms since 1970.

        After `updates_per_snapshot` updates of a share-partition, the coordinator writes a snapshot: the
        share-partition's complete state.
        """
        self._journal = journal
        self._updates_per_snapshot = updates_per_snapshot
        self._clock = clock
        # This lock guards `_states` and `_writes`. A thread can take the lock of a journal partition while it holds
        # this lock.
        self._lock = threading.Lock()
        self._states: dict[SharePartitionId, ShareState] = {}
        self._writes: dict[int, int] = {}  # journal partition -> number of records since the partition was last pruned
        self._loader = threading.Thread(target=self._load, name="share-loader", daemon=True)
        self._stop_loading = threading.Event()

    # -- start and stop

    def start(self) -> None:
        """Start a thread that loads the states from the journal.

        Until this thread ends, requests get the error COORDINATOR_LOAD_IN_PROGRESS.
        """
        self._loader.start()

    def stop(self, deadline: float) -> None:
        self._stop_loading.set()
        if self._loader.is_alive():
            self._loader.join(max(0.0, deadline - time.monotonic()))

    def make_topic(self) -> None:
        """Create `__share_group_state` if it does not exist. Raises KafkaError."""
        self._journal.make_topic()

    def _load(self) -> None:
        self._journal.load(self._replay, self._stop_loading, STATE_KEYS, all_records)

    def _replay(self, key: Key, value: Any, producer_id: int | None) -> None:
        assert isinstance(key, ShareSnapshotKey | ShareUpdateKey)
        id = SharePartitionId(key.group_id, PartitionId(key.topic_id, key.partition))
        with self._lock:
            state = replayed(self._states.get(id), value)
            if state is None:
                self._states.pop(id, None)
            else:
                self._states[id] = state

    # -- requests

    def initialize(self, ids: Sequence[SharePartitionId], state_epoch: int, start_offset: int) -> None:
        """Create the states of share-partitions, or replace states whose state epoch is at most `state_epoch`.

        Raises the errors of `begin_initialize` and `finish`.
        """
        begun = [(id, self.begin_initialize(id, state_epoch, start_offset)) for id in ids]
        for id, queued in begun:
            self.finish(id, queued)

    def begin_initialize(self, id: SharePartitionId, state_epoch: int, start_offset: int) -> QueuedRecords:
        """Add a new state of a share-partition to the journal's queue. `finish` waits until the state is on disk.

        Raises FENCED_STATE_EPOCH if the existing state has a newer state epoch, and the errors of `Journal.enqueue`.
        """
        self._journal.make_topic()
        with self._lock:
            known = self._known(id)
            if known is not None:
                _check_state_epoch(known, state_epoch)
            now = self._clock()
            epoch = 0 if known is None else known.snapshot_epoch + 1
            state = ShareState(state_epoch, start_offset, snapshot_epoch=epoch, created=now, written=now)
            return self._put(id, state, snapshot_record(id.group_id, id.partition, state))

    def read(self, id: SharePartitionId, leader_epoch: int = NO_LEADER_EPOCH) -> ShareState:
        """Return the state of a share-partition.

        Raises INVALID_REQUEST if the state does not exist, and FENCED_LEADER_EPOCH if `leader_epoch` is too old.
        """
        with self._lock:
            state = self._existing(id)
            _check_leader_epoch(state, leader_epoch)
            return state

    def summary(self, id: SharePartitionId) -> ShareState:
        """Return the state of a share-partition. If no state is stored, return a state without a start offset."""
        with self._lock:
            return self._known(id) or ShareState(0, NO_START_OFFSET)

    def begin_write(self, id: SharePartitionId, state_epoch: int, leader_epoch: int, update: Update) -> QueuedRecords:
        """Add a change of a share-partition to the journal's queue. `finish` waits until the change is on disk.

        Raises INVALID_REQUEST, FENCED_STATE_EPOCH, FENCED_LEADER_EPOCH, and the errors of `Journal.enqueue`.
        """
        with self._lock:
            known = self._existing(id)
            _check_state_epoch(known, state_epoch)
            _check_leader_epoch(known, leader_epoch)
            changed = known.updated(update, leader_epoch, self._clock())
            if known.updates >= self._updates_per_snapshot:
                changed = changed.as_snapshot()
                return self._put(id, changed, snapshot_record(id.group_id, id.partition, changed))
            return self._put(id, changed, update_record(id.group_id, id.partition, changed, update))

    def finish(self, id: SharePartitionId, queued: QueuedRecords) -> None:
        """Wait until a queued change of a share-partition is on disk. Raises the errors of `Journal.write`.

        A caller with several changes adds all of them to the queue, and then calls `finish` for each change. One sync
        can then store many changes.
        """
        try:
            self._journal.write(queued)
        except KafkaError:
            with self._lock:
                if id in self._states:
                    # The write has failed, so the journal does not contain the change. With this value of `updates`,
                    # the next record is a snapshot: the complete state, including the change.
                    self._states[id] = self._states[id]._replace(updates=self._updates_per_snapshot)
            raise

    def delete(self, ids: Sequence[SharePartitionId]) -> None:
        """Delete the states of share-partitions. Raises the errors of `begin_delete` and `finish`."""
        begun = [(id, self.begin_delete(id)) for id in ids]
        for id, queued in begun:
            if queued is not None:
                self.finish(id, queued)

    def begin_delete(self, id: SharePartitionId) -> QueuedRecords | None:
        """Add the deletion of a share-partition's state to the journal's queue.

        Return the queued records, or None if the share-partition has no state. To wait until the deletion is on disk,
        the caller passes the queued records to `finish`.

        Raises the errors of `Journal.enqueue`.
        """
        with self._lock:
            if self._known(id) is None:
                return None
            queued = self._journal.enqueue(str(id), [tombstone(id.group_id, id.partition)])
            del self._states[id]
            return queued

    # -- deletion of old records

    def prune(self, delete_before: Callable[[dict[int, int]], None]) -> None:
        """Delete journal records that are not needed any more. The broker calls this method periodically.

        The method prunes only journal partitions with at least `UPDATES_BEFORE_PRUNING` new records:

        1. It writes a new snapshot of each share-partition whose state is in these journal partitions. The snapshot
           replaces all earlier records of the share-partition.
        2. It passes the new log start offsets of these journal partitions to `delete_before`.

        If a snapshot cannot be written, the method raises KafkaError and deletes nothing.
        """
        with self._lock:
            due = [number for number, count in self._writes.items() if count >= UPDATES_BEFORE_PRUNING]
            ids = [id for id in self._states if self._journal.partition_for(str(id)) in due]
            ends = {number: self._journal.log_end_offset(number) for number in due}
            queued = [self._snapshot(id) for id in ids]
            for number in due:
                self._writes[number] = 0
        for each in queued:
            self._journal.write(each)
        if ends:
            delete_before(ends)

    def _snapshot(self, id: SharePartitionId) -> QueuedRecords:
        state = self._states[id].as_snapshot()
        return self._put(id, state, snapshot_record(id.group_id, id.partition, state))

    # -- the caller holds the lock

    def _known(self, id: SharePartitionId) -> ShareState | None:
        self._journal.check_coordinates(str(id))
        return self._states.get(id)

    def _existing(self, id: SharePartitionId) -> ShareState:
        known = self._known(id)
        if known is None:
            why = f"the share-partition {id} is not initialized"
            raise KafkaError(ErrorCode.INVALID_REQUEST, why)
        return known

    def _put(self, id: SharePartitionId, state: ShareState, record: KeyAndValue) -> QueuedRecords:
        queued = self._journal.enqueue(str(id), [record])
        number = self._journal.partition_for(str(id))
        self._writes[number] = self._writes.get(number, 0) + 1
        self._states[id] = state
        return queued


def _check_state_epoch(known: ShareState, state_epoch: int) -> None:
    if state_epoch < known.state_epoch:
        raise KafkaError(
            ErrorCode.FENCED_STATE_EPOCH, f"the request's state epoch must be at least {known.state_epoch}"
        )


def _check_leader_epoch(known: ShareState, leader_epoch: int) -> None:
    if NO_LEADER_EPOCH < leader_epoch < known.leader_epoch:
        raise KafkaError(
            ErrorCode.FENCED_LEADER_EPOCH, f"the request's leader epoch must be at least {known.leader_epoch}"
        )
