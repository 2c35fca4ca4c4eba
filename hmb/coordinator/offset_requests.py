"""Handles the requests for committed offsets, and deletes expired offsets and groups.

The broker handles a commit request in two steps. In `begin_commit`, a thread takes the lock of the group, and
checks that the sender is allowed to commit. It adds the offsets to the journal's queue, and releases the lock.
In `finish`, the thread waits until the offsets are on disk. If several commit requests have arrived, the thread
first calls `begin_commit` for each of them. One sync then writes the offsets of all these requests to disk.

For example, the retention time of committed offsets is 7 days, and the last consumer of a classic group leaves. After 7
days, `expire` deletes all offsets of the group. The group then has no members and no offsets, so `expire` also deletes
the group.

Source: Kafka's `GroupCoordinatorService`; KIP-211.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from hmb.coordinator.group import Commit
from hmb.coordinator.group_expiry import expiry
from hmb.coordinator.group_runner import GroupRunner
from hmb.coordinator.group_table import GroupTable, check_group_id
from hmb.coordinator.journal.partition import QueuedRecords
from hmb.coordinator.journal.writing import Journal
from hmb.coordinator.offset_manager import OffsetManager
from hmb.coordinator.offsets import CommittedOffset
from hmb.protocol.consumer_protocol import CONSUMER
from hmb.protocol.enums import GroupType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import OFFSETS_TOPIC, TopicPartition
from hmb.records import EndTransactionMarker
from hmb.records.producer_numbers import ProducerIdAndEpoch
from hmb.storage.failure_isolation import isolated

LOGGER = logging.getLogger(__name__)


class OffsetRequests:
    """Handles the requests for the committed offsets of all groups. Thread-safe."""

    def __init__(
        self,
        table: GroupTable,
        journal: Journal,
        offsets: OffsetManager,
        wall_clock: Callable[[], int],
        clock: Callable[[], int],
    ) -> None:
        self._table = table
        self._journal = journal
        self._offsets = offsets
        self._wall_clock = wall_clock
        self._clock = clock

    def begin_commit(self, group_id: str, commit: Commit) -> QueuedRecords:
        """Add a commit of offsets to the journal's queue. The caller must then call `finish`, which waits for the disk.

        `commit.epoch` is the member epoch or the generation of the sender. A negative epoch means that the sender is
        not a member. If the epoch is negative and the group does not exist, this method creates the group. Raises
        KafkaError.
        """
        if commit.epoch < 0:
            self._journal.check_coordinates(group_id)
            runner = self._table.find_or_make(group_id)
        else:
            runner = self._table.find(group_id)
        with runner.lock:
            runner.machine.check_commit(commit, self._clock())
            return self._offsets.begin_commit(group_id, commit.offsets, commit.producer)

    def finish(self, commit: QueuedRecords) -> None:
        """Wait until all records of `commit` are on disk. If this method raises KafkaError, no record is stored."""
        self._journal.write(commit)

    def fetch(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None,
        member_id: str | None = None,
        member_epoch: int = -1,
    ) -> dict[TopicPartition, CommittedOffset]:
        """Return the group's committed offsets for `partitions` (None means all partitions). Raises KafkaError."""
        self._journal.check_coordinates(group_id)
        runner = self._table.get(group_id)
        if runner is not None:
            with runner.lock:
                runner.machine.check_fetch(member_id, member_epoch)
        return self._offsets.fetch(group_id, partitions)

    def pending(self, group_id: str) -> set[TopicPartition]:
        """Return the partitions for which an open transaction contains offsets of this group."""
        return self._offsets.pending(group_id)

    def partition_for(self, group_id: str) -> TopicPartition:
        """Return the partition of `__consumer_offsets` that stores the offsets of a group. Raises NOT_COORDINATOR."""
        return TopicPartition(OFFSETS_TOPIC, self._journal.partition_for(group_id))

    def begin_marker(self, number: int, marker: EndTransactionMarker, producer: ProducerIdAndEpoch) -> QueuedRecords:
        """Queue a transaction marker for partition `number` of the topic `__consumer_offsets`. Raises KafkaError.

        The caller must then call `finish`, which waits until the marker is on disk.
        """
        return self._offsets.begin_end_transaction(number, marker, producer)

    def delete(self, group_id: str, partitions: Sequence[TopicPartition]) -> set[str]:
        """Delete the offsets of `partitions`, except the offsets of topics that the group still reads.

        Return the names of the topics that the group still reads. Raises KafkaError.
        """
        check_group_id(group_id)
        runner = self._table.find(group_id)
        with runner.lock:
            if not runner.machine.is_empty and runner.machine.protocol_type not in (CONSUMER, GroupType.STREAMS):
                raise KafkaError(ErrorCode.NON_EMPTY_GROUP, f"group {group_id!r} has members; stop them first")
            read = {topic for topic in {each.topic for each in partitions} if runner.machine.reads(topic)}
            deletion = self._offsets.begin_delete(group_id, [each for each in partitions if each.topic not in read])
        self._journal.write(deletion)
        return read

    # -- deletion and expiry

    def delete_group(self, runner: GroupRunner) -> None:
        """Delete a group and its offsets. The caller must hold the group's lock until the deletion is complete."""
        group_id = runner.machine.group_id
        self._journal.write(self._offsets.begin_delete(group_id, None, runner.machine.tombstones()))
        runner.machine.unload()
        self._table.remove(runner)

    def expire(self, retention_ms: int) -> None:
        """Delete all expired offsets. Then delete each group that has no members and no offsets."""
        for runner in self._table.all():
            with isolated(LOGGER, f"group {runner.machine.group_id}", "the offsets do not expire"):
                self._expire(runner, retention_ms)

    def _expire(self, runner: GroupRunner, retention_ms: int) -> None:
        group_id = runner.machine.group_id
        with runner.lock:
            when = expiry(runner.machine)
            if when is None:
                return
            gone = self._offsets.expired(group_id, self._wall_clock(), retention_ms, when)
            # Some clients receive a member id first, and join the group later. The group waits for such a client until
            # a deadline. During this time, the group must not be deleted, even if it has no members.
            is_awaited = runner.machine.next_deadline() is not None
            is_left = len(gone) < len(self._offsets.fetch(group_id)) or is_awaited or self._offsets.pending(group_id)
            if runner.machine.is_empty and not is_left:
                self.delete_group(runner)
            elif gone:
                self._journal.write(self._offsets.begin_delete(group_id, gone))
