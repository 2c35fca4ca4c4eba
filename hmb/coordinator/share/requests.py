"""The requests for share groups: heartbeats of members, and requests of administrators.

`ShareGroupRequests` uses three parts: the table of all groups, the share coordinator with the states of
share-partitions, and the share-partitions that members read.

Source: KIP-932; Kafka's `GroupCoordinatorService`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar
from uuid import UUID

from hmb.coordinator.classic.group import ClassicGroup
from hmb.coordinator.cluster_topics import ClusterTopics, PartitionId
from hmb.coordinator.groups import GroupCoordinator
from hmb.coordinator.share.coordinator import ShareCoordinator, SharePartitionId
from hmb.coordinator.share.group import ShareGroup, check_heartbeat
from hmb.coordinator.share.partitions import SharePartitions
from hmb.coordinator.share.share_state import ShareState
from hmb.coordinator.share.state_records import NO_START_OFFSET
from hmb.coordinator.shared_group import SharedGroup
from hmb.protocol.enums import JOIN_EPOCH
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from hmb.protocol.topics import SHARE_STATE_TOPIC

T = TypeVar("T")


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
        """Handle ShareGroupHeartbeat: return the response after all changes are on disk. Raises KafkaError."""
        check_heartbeat(request)
        joins = request.member_epoch == JOIN_EPOCH
        group_id = request.group_id
        shared = self._groups.find_or_make(group_id) if joins else self._groups.find(group_id)
        while missing := shared.step(lambda now: self._as_share(shared, joins).uninitialized(request)):
            self._initialize(group_id, missing, 0, NO_START_OFFSET)
            shared.step(partial(self._set_initialized, shared, missing), durable=True)
        return shared.step(lambda now: _share(shared).heartbeat(request, client_id, client_host, now), durable=True)

    def _as_share(self, shared: SharedGroup, joins: bool) -> ShareGroup:
        """Return the group as a share group. The caller must hold the group's lock.

        A group that was just created has no protocol yet, and becomes a share group. Raises GROUP_ID_NOT_FOUND,
        COORDINATOR_NOT_AVAILABLE.
        """
        if joins:
            shared.check_loaded()
        is_new = isinstance(shared.machine, ClassicGroup) and shared.machine.protocol_type is None
        if joins and is_new and shared.machine.is_empty and not self._groups.has_offsets(shared.machine.group_id):
            shared.machine = self._groups.make_share(shared.machine.group_id)
        return _share(shared)

    def _set_initialized(self, shared: SharedGroup, partitions: Iterable[PartitionId], now: int) -> None:
        _share(shared).set_initialized(partitions)

    def _initialize(
        self, group_id: str, partitions: Iterable[PartitionId], state_epoch: int, start_offset: int
    ) -> None:
        ids = [SharePartitionId(group_id, partition) for partition in partitions]
        self.partitions.discard(ids)
        self.coordinator.initialize(ids, state_epoch, start_offset)

    # -- administrators

    def describe(self, group_id: str, describe: Callable[[ShareGroup, ClusterTopics], T]) -> T:
        """Return the result of `describe`, which runs under the lock of the group. Raises KafkaError."""
        shared = self._groups.find(group_id)
        with shared.lock:
            return describe(_share(shared), self._topics)

    def partitions_of(self, group_id: str) -> list[PartitionId]:
        """Return the share-partitions of a group, sorted. If the group is not a share group, return an empty list."""
        try:
            return self.describe(group_id, lambda group, topics: sorted(group.state.initialized))
        except KafkaError:
            return []

    def start_offsets(self, group_id: str) -> dict[PartitionId, ShareState]:
        """Return the stored state of each share-partition of a group. Raises GROUP_ID_NOT_FOUND."""
        partitions = self.describe(group_id, lambda group, topics: sorted(group.state.initialized))
        return {each: self.coordinator.summary(SharePartitionId(group_id, each)) for each in partitions}

    def alter_offsets(self, group_id: str, offsets: Sequence[NewOffset]) -> None:
        """Change the start offsets of share-partitions.

        Raises GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, and the errors of the journal.
        """
        shared = self._groups.find(group_id)
        with shared.lock:
            _share(shared).check_empty()
        for partition, start_offset in offsets:
            state_epoch = self.coordinator.summary(SharePartitionId(group_id, partition)).state_epoch + 1
            self._initialize(group_id, [partition], state_epoch, start_offset)
        shared.step(partial(self._set_initialized, shared, [each.partition for each in offsets]), durable=True)

    def delete_offsets(self, group_id: str, topic_ids: Sequence[UUID]) -> None:
        """Delete the share-partitions of topics. Raises GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""
        shared = self._groups.find(group_id)
        with shared.lock:
            _share(shared).check_empty()
        self._forget(shared, topic_ids)

    def _forget(self, shared: SharedGroup, topic_ids: Sequence[UUID]) -> None:
        gone = shared.step(lambda now: _share(shared).forget(topic_ids), durable=True)
        self.delete_states(shared.machine.group_id, gone)

    def delete_states(self, group_id: str, partitions: Iterable[PartitionId]) -> None:
        """Delete the states of share-partitions. Raises the errors of the journal."""
        ids = [SharePartitionId(group_id, partition) for partition in partitions]
        self.partitions.discard(ids)
        self.coordinator.delete(ids)

    def on_topics_deleted(self, ids: Mapping[str, UUID]) -> None:
        """Delete the share-partitions of deleted topics. `ids` maps the name of each deleted topic to its id."""
        for shared in self._groups.all():
            if not isinstance(shared.machine, ShareGroup):
                continue
            if SHARE_STATE_TOPIC in ids:
                topic_ids = {partition.topic_id for partition in self.partitions_of(shared.machine.group_id)}
            else:
                topic_ids = set(ids.values())
            self._forget(shared, list(topic_ids))


def _share(shared: SharedGroup) -> ShareGroup:
    """Return the group as a share group. Raises GROUP_ID_NOT_FOUND."""
    if not isinstance(shared.machine, ShareGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {shared.machine.group_id} is not a share group.")
    return shared.machine
