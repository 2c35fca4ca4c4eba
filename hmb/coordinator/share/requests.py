"""Handles the requests for share groups: heartbeats of members, and requests of administrators.

A `ShareGroupRequests` object uses three other objects:
- `GroupCoordinator` contains all groups.
- `ShareCoordinator` stores the states of share-partitions on disk.
- `SharePartitions` contains, in memory, the share-partitions that members are reading.

Source: KIP-932; Kafka's `GroupCoordinatorService`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple
from uuid import UUID

from hmb.coordinator.cluster_topics import ClusterTopics
from hmb.coordinator.group import check_empty
from hmb.coordinator.group_runner import GroupRunner
from hmb.coordinator.groups import GroupCoordinator
from hmb.coordinator.share.coordinator import ShareCoordinator, SharePartitionId
from hmb.coordinator.share.description import DescribedShareGroup, describe_share_group
from hmb.coordinator.share.group import ShareGroup, check_heartbeat
from hmb.coordinator.share.partitions import SharePartitions
from hmb.coordinator.share.state_records import NO_START_OFFSET
from hmb.coordinator.share.stored_state import ShareState
from hmb.protocol.enums import JOIN_EPOCH
from hmb.protocol.errors import KafkaError
from hmb.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from hmb.protocol.topics import SHARE_STATE_TOPIC, PartitionId


class NewOffset(NamedTuple):
    """A partition, and the start offset that an administrator chooses for it."""

    partition: PartitionId
    start_offset: int


class ShareGroupRequests:
    """Handles the requests for share groups. Thread-safe."""

    def __init__(
        self,
        groups: GroupCoordinator,
        coordinator: ShareCoordinator,
        partitions: SharePartitions,
        topics: ClusterTopics,
    ) -> None:
        self._groups = groups
        self.coordinator = coordinator
        self.partitions = partitions
        self._topics = topics

    # -- members

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, client_id: str, client_host: str
    ) -> ShareGroupHeartbeatResponse:
        """Handle the request ShareGroupHeartbeat. Wait until all changes are on disk, and then return the response.

        Raises KafkaError.
        """
        check_heartbeat(request)
        joins = request.member_epoch == JOIN_EPOCH
        group_id = request.group_id
        runner = self._groups.find_or_make(group_id) if joins else self._groups.find(group_id)
        while missing := runner.step(lambda now: self._as_share(runner, creates=joins).uninitialized(request)):
            self._initialize(group_id, missing, 0, NO_START_OFFSET)
            runner.step(partial(self._set_initialized, runner, missing), durable=True)
        return runner.step(
            lambda now: runner.as_kind(ShareGroup).heartbeat(request, client_id, client_host, now), durable=True
        )

    def _as_share(self, runner: GroupRunner, *, creates: bool) -> ShareGroup:
        """Return the group as a share group. The caller must hold the group's lock.

        If `creates` is true, the method first converts a new group (no type, no committed offsets) into a share group.

        Raises GROUP_ID_NOT_FOUND if the group is still not a share group. If `creates` is true, also raises
        COORDINATOR_NOT_AVAILABLE if another thread has just deleted the group.
        """
        if creates:
            runner.check_loaded()
            if runner.machine.protocol_type is None and not self._groups.has_offsets(runner.machine.group_id):
                self._groups.replace_empty_classic(runner, ShareGroup)
        return runner.as_kind(ShareGroup)

    def _set_initialized(self, runner: GroupRunner, partitions: Iterable[PartitionId], now: int) -> None:
        runner.as_kind(ShareGroup).set_initialized(partitions)

    def _initialize(
        self, group_id: str, partitions: Iterable[PartitionId], state_epoch: int, start_offset: int
    ) -> None:
        ids = [SharePartitionId(group_id, partition) for partition in partitions]
        self.partitions.discard(ids)
        self.coordinator.initialize(ids, state_epoch, start_offset)

    # -- administrators

    def describe(self, group_id: str) -> DescribedShareGroup:
        """Return the state and the members of a share group. Raises KafkaError."""
        runner = self._groups.find(group_id)
        with runner.lock:
            return describe_share_group(runner.as_kind(ShareGroup), self._topics)

    def partitions_of(self, group_id: str) -> list[PartitionId]:
        """Return the share-partitions of a group, sorted. If the group is not a share group, return an empty list."""
        try:
            return self._partitions_of(group_id)
        except KafkaError:
            return []

    def start_offsets(self, group_id: str) -> dict[PartitionId, ShareState]:
        """Return the stored state of each share-partition of a group. Raises GROUP_ID_NOT_FOUND."""
        partitions = self._partitions_of(group_id)
        return {each: self.coordinator.summary(SharePartitionId(group_id, each)) for each in partitions}

    def _partitions_of(self, group_id: str) -> list[PartitionId]:
        runner = self._groups.find(group_id)
        with runner.lock:
            return sorted(runner.as_kind(ShareGroup).state.initialized)

    def alter_offsets(self, group_id: str, offsets: Sequence[NewOffset]) -> None:
        """Change the start offsets of share-partitions. If the group does not exist, create it.

        Raises GROUP_ID_NOT_FOUND if the group is not a share group, and NON_EMPTY_GROUP if the group has members. Also
        raises the errors of `ShareCoordinator.initialize`.
        """
        runner = self._groups.find_or_make(group_id)
        runner.step(lambda now: check_empty(self._as_share(runner, creates=True)))
        if offsets:
            self.coordinator.make_topic()
        for partition, start_offset in offsets:
            state_epoch = self.coordinator.summary(SharePartitionId(group_id, partition)).state_epoch + 1
            self._initialize(group_id, [partition], state_epoch, start_offset)
        runner.step(partial(self._set_initialized, runner, [each.partition for each in offsets]), durable=True)

    def delete_offsets(self, group_id: str, topic_ids: Sequence[UUID]) -> None:
        """Delete a share group's offsets for these topics. Raises GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""
        runner = self._groups.find(group_id)
        with runner.lock:
            check_empty(runner.as_kind(ShareGroup))
        self._forget(runner, topic_ids)

    def _forget(self, runner: GroupRunner, topic_ids: Sequence[UUID]) -> None:
        gone = runner.step(lambda now: runner.as_kind(ShareGroup).forget(topic_ids), durable=True)
        self.delete_states(runner.machine.group_id, gone)

    def delete_states(self, group_id: str, partitions: Iterable[PartitionId]) -> None:
        """Delete the stored states of these share-partitions. Raises the errors of `ShareCoordinator.delete`."""
        ids = [SharePartitionId(group_id, partition) for partition in partitions]
        self.partitions.discard(ids)
        self.coordinator.delete(ids)

    def on_topics_deleted(self, ids: Mapping[str, UUID]) -> None:
        """Delete the share-partitions of deleted topics. `ids` maps the name of each of these topics to its id."""
        for runner in self._groups.all():
            if not isinstance(runner.machine, ShareGroup):
                continue
            if SHARE_STATE_TOPIC in ids:
                topic_ids = {partition.topic_id for partition in self.partitions_of(runner.machine.group_id)}
            else:
                topic_ids = set(ids.values())
            self._forget(runner, list(topic_ids))
