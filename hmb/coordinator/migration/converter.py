"""Creates classic groups and KIP-848 groups, and converts a group from one kind to the other.

Each group has a `GroupRunner`, whose field `machine` is the state machine of the group. The class of the
machine determines the protocol of the group. If a client sends a request of another protocol, `GroupConverter`
replaces the machine by one for this protocol. It does so only if the group is allowed to change its protocol.

For example, a consumer joins a classic group that has members. The consumer uses the KIP-848 protocol, and
sends ConsumerGroupHeartbeat with epoch 0. `consumer_heartbeat` makes a KIP-848 group with the same members
(upgrade.py), and passes the heartbeat to this new group. If the new group accepts the heartbeat, it replaces
the classic group. If it rejects the heartbeat, for example because it has too many members, the classic group
stays.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence

from hmb.coordinator.classic.group import ClassicGroup
from hmb.coordinator.classic.members import Call, MemberIdentity
from hmb.coordinator.classic.settings import GroupSettings
from hmb.coordinator.cluster_topics import ClusterTopics, MayDescribe
from hmb.coordinator.consumer.group import ConsumerGroup
from hmb.coordinator.consumer.settings import ConsumerGroupSettings
from hmb.coordinator.group import Write
from hmb.coordinator.group_runner import GroupRunner
from hmb.coordinator.journal.records import KeyAndValue
from hmb.coordinator.migration import classic_requests
from hmb.coordinator.migration.downgrade import classic_group_of, may_downgrade
from hmb.coordinator.migration.upgrade import check_upgrade, dissolve, move_members
from hmb.protocol.enums import JOIN_EPOCH, GroupType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from hmb.protocol.messages.heartbeat import HeartbeatRequest
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from hmb.protocol.messages.sync_group import SyncGroupRequest

LOGGER = logging.getLogger(__name__)


class GroupConverter:
    """Passes requests to classic groups and KIP-848 groups, and converts a group if a request requires this.

    The parameter `runner` of some methods is a `GroupRunner`, which contains the state machine of one group and a
    lock. The caller must hold this lock.
    """

    def __init__(
        self,
        settings: GroupSettings,
        consumer_settings: Callable[[str], ConsumerGroupSettings],
        topics: ClusterTopics,
        clock: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._consumer_settings = consumer_settings
        self._topics = topics
        self._clock = clock

    def consumer(self, group_id: str) -> ConsumerGroup:
        """Return a new KIP-848 group."""
        return ConsumerGroup(group_id, self._consumer_settings, self._topics, self._clock, self._downgraded)

    # -- requests of the KIP-848 protocol

    def consumer_heartbeat(
        self,
        runner: GroupRunner,
        request: ConsumerGroupHeartbeatRequest,
        client_id: str,
        client_host: str,
        now: int,
        may_describe: MayDescribe,
    ) -> ConsumerGroupHeartbeatResponse:
        """Pass a ConsumerGroupHeartbeat request to the group of the client, and return the response.

        The group is usually a KIP-848 group. If the request joins a classic group, the method passes it to a new
        KIP-848 group with the same members. If the new group accepts the request, it replaces the classic group.

        Raises GROUP_ID_NOT_FOUND, COORDINATOR_NOT_AVAILABLE, and the errors of `ConsumerGroup.heartbeat`.
        """
        before = runner.machine
        if request.member_epoch == JOIN_EPOCH:
            runner.check_loaded()
        if request.member_epoch != JOIN_EPOCH or not isinstance(before, ClassicGroup):
            return runner.as_kind(ConsumerGroup).heartbeat(request, client_id, client_host, now, may_describe)
        group = self._upgraded(before, now)
        response = group.heartbeat(request, client_id, client_host, now, may_describe)
        dissolve(before)
        runner.replace(group)
        return response

    def _upgraded(self, classic: ClassicGroup, now: int) -> ConsumerGroup:
        """Return the KIP-848 group that can replace the classic group. Raises GROUP_ID_NOT_FOUND."""
        group = self.consumer(classic.group_id)
        if not classic.is_empty:
            check_upgrade(classic, group.settings)
            move_members(classic, group, self._topics, now)
        elif classic.protocol_type is not None:  # Otherwise the group has no record yet.
            group.state.replace_classic(classic.record_tombstones())
        return group

    def _downgraded(self, group: ConsumerGroup, leaving: Collection[str], now: int) -> ClassicGroup | None:
        """Return the classic group that replaces a KIP-848 group, or None if the group keeps its protocol.

        If the members cannot be converted, log the error and return None. The method does not raise the error, because
        sometimes no client waits for a response. For example, the session of a member has expired.
        """
        if not may_downgrade(group, leaving, self._settings.max_size):
            return None
        try:
            return classic_group_of(group, leaving, self._topics, self._settings, self._clock, now)
        except KafkaError as error:
            LOGGER.warning("%s", error.message)
            return None

    # -- requests of the classic protocol

    def join(
        self, runner: GroupRunner, call: Call, request: JoinGroupRequest, now: int, may_describe: MayDescribe
    ) -> None:
        """Pass a JoinGroup request to the group with the group id in the request. Raises KafkaError.

        JoinGroup is a request of the classic protocol. The result depends on the type of the group:

        - A classic group handles the request.
        - A KIP-848 group that has members handles the request.
        - A KIP-848 group that has no members becomes a classic group, and the classic group handles the request. If
          the request contains a member id, the method raises UNKNOWN_MEMBER_ID instead.
        - A streams group that has no members becomes a classic group in the same way, with the same error.
        - A streams group that has members answers with the error INCONSISTENT_GROUP_PROTOCOL.
        - A share group always answers with the error INCONSISTENT_GROUP_PROTOCOL.
        """
        runner.check_loaded()
        group = runner.machine
        if isinstance(group, ConsumerGroup) and not group.is_empty:
            classic_requests.join(group, call, request, self._topics, now, may_describe)
        elif group.kind is GroupType.SHARE or (group.kind is GroupType.STREAMS and not group.is_empty):
            refused = JoinGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            # As in Kafka, the response contains no member id. If this method raised the error, the broker would put the
            # request's member id into the response.
            group.responses.append((call, refused))
        elif not isinstance(group, ClassicGroup) and request.member_id:
            why = f"group {group.group_id!r} has no member {request.member_id!r}"
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, why)
        else:
            self._as_classic(runner).join(call, request, now)

    def _as_classic(self, runner: GroupRunner) -> ClassicGroup:
        """Return the group as a classic group. Raises KafkaError if the group has another protocol and has members."""
        if runner.machine.kind in (GroupType.CONSUMER, GroupType.STREAMS):
            runner.replace(self._replacing(runner.machine.group_id, runner.machine.tombstones()))
        return runner.as_kind(ClassicGroup)

    def _replacing(self, group_id: str, tombstones: Sequence[KeyAndValue]) -> ClassicGroup:
        """Return a new classic group. It replaces a group that uses another protocol.

        `tombstones` delete the records of the old group from the journal. The first write of the classic group contains
        the tombstones. If this write fails, the later writes contain them until one write succeeds.
        """
        classic = ClassicGroup(group_id, self._settings, self._clock)

        def keep_tombstones(error: KafkaError | None, now: int) -> None:
            if error is not None:
                classic.state.replaced = tombstones

        classic.writes.append(Write(tombstones, keep_tombstones))
        return classic

    def sync(self, runner: GroupRunner, call: Call, request: SyncGroupRequest, now: int) -> None:
        """Pass a SyncGroup request to the group of the sender. Raises KafkaError.

        The group may use the classic protocol or the protocol of KIP-848.
        """
        if isinstance(runner.machine, ConsumerGroup):
            classic_requests.sync(runner.machine, call, request, self._topics, now)
        else:
            runner.as_kind(ClassicGroup).sync(call, request, now)

    def heartbeat(self, runner: GroupRunner, request: HeartbeatRequest, now: int) -> None:
        """Pass a Heartbeat request to the group of the sender. Raises KafkaError.

        The group may use the classic protocol or the protocol of KIP-848.
        """
        if isinstance(runner.machine, ConsumerGroup):
            classic_requests.heartbeat(runner.machine, request, now)
        else:
            runner.as_kind(ClassicGroup).heartbeat(request, now)

    def leave(self, runner: GroupRunner, leaving: Sequence[MemberIdentity], now: int) -> list[ErrorCode]:
        """Let the group handle LeaveGroup. Return one error code for each entry of `leaving`. Raises KafkaError."""
        if isinstance(runner.machine, ConsumerGroup):
            return classic_requests.leave(runner.machine, leaving, now)
        return runner.as_kind(ClassicGroup).leave(leaving, now)
