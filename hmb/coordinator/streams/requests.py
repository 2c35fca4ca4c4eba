"""Handles the requests for streams groups: heartbeats of members, and descriptions.

The table of all groups also contains the streams groups. A member can join with the id of a classic group that has no
members. This group then becomes a streams group, and keeps its committed offsets.

Source: KIP-1071; Kafka's `GroupCoordinatorService`.
"""

from __future__ import annotations

from hmb.coordinator.group_runner import GroupRunner
from hmb.coordinator.groups import GroupCoordinator
from hmb.coordinator.member_memory import check_memory
from hmb.coordinator.streams.description import DescribedStreamsGroup, describe_streams_group
from hmb.coordinator.streams.group import HeartbeatResult, StreamsGroup
from hmb.coordinator.streams.heartbeat import check_heartbeat
from hmb.coordinator.streams.topology import size_of, topology_of
from hmb.protocol.enums import JOIN_EPOCH
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest


class StreamsGroupRequests:
    """Handles the requests for streams groups. Thread-safe."""

    def __init__(self, groups: GroupCoordinator) -> None:
        self._groups = groups

    def heartbeat(self, request: StreamsGroupHeartbeatRequest, client_id: str, client_host: str) -> HeartbeatResult:
        """Handle the request StreamsGroupHeartbeat. Wait until all changes are on disk, and then return the result.

        Raises KafkaError.
        """
        check_heartbeat(request)
        if request.topology is not None:
            check_memory(size_of(topology_of(request.topology)), self._groups.all)
        runner = self._find(request)

        def step(now: int) -> HeartbeatResult:
            before = runner.machine
            if request.member_epoch == JOIN_EPOCH:
                runner.check_loaded()
                self._groups.replace_empty_classic(runner, StreamsGroup)
            try:
                return runner.as_kind(StreamsGroup).heartbeat(request, client_id, client_host, now)
            except KafkaError:
                runner.machine = before  # The member was refused, so the group keeps its old protocol.
                raise

        return runner.step(step, durable=True)

    def _find(self, request: StreamsGroupHeartbeatRequest) -> GroupRunner:
        if request.member_epoch == JOIN_EPOCH:
            return self._groups.find_or_make(request.group_id)
        try:
            return self._groups.find(request.group_id)
        except KafkaError as error:
            if error.code is ErrorCode.GROUP_ID_NOT_FOUND and request.member_epoch > JOIN_EPOCH:
                raise KafkaError(error.code, f"Streams group {request.group_id} not found.") from error
            raise

    def describe(self, group_id: str) -> DescribedStreamsGroup:
        """Return the state, the topology and the members of a streams group. Raises KafkaError."""
        runner = self._groups.find(group_id)
        with runner.lock:
            return describe_streams_group(runner.as_kind(StreamsGroup))
