"""A member of a classic group: joins the group, receives its partitions from the leader, and sends heartbeats.

The problem: the members must divide the partitions among themselves, but they do not know each other. The
solution: the coordinator waits until all members have joined. This wait is called the *barrier*. Then one
member, the *leader*, assigns partitions to every member. Each rebalance starts a new *generation* of the group.
During a rebalance, a member passes through these states:
    UNJOINED    The consumer gives up partitions before the member joins. An *eager* member gives up all partitions.
                A *cooperative* member gives up only partitions of topics that it no longer subscribes to.
    JOINING     The member has sent JoinGroup. The coordinator responds when all members have joined (the barrier).
    ASSIGNING   Only the leader enters this state. It asks a broker for the partitions of all topics to which the
                members subscribe, and calls the assignor.
    SYNCING     The member has sent SyncGroup. The coordinator responds when the leader has sent the assignment.
    APPLYING    The consumer takes over its new partitions. If a cooperative member must give up partitions for
                other members, it gives them up first, and joins again afterwards.
    STABLE      The consumer reads its partitions.

In the states UNJOINED and APPLYING, the member waits until the consumer's thread has called the rebalance
listener. The consumer's thread does this when the consumer polls. While the member waits, a second thread, the
membership thread, sends heartbeats. A slow consumer therefore stays a member. In JOINING and SYNCING, the
member sends no heartbeats. Its JoinGroup or SyncGroup request waits at the coordinator, so the coordinator
knows that the member is alive.

A member joins again in three cases. First, the coordinator responds to a heartbeat with REBALANCE_IN_PROGRESS. Second,
the consumer changes its subscription. Third, the member is the leader, and the number of partitions of a topic has
changed. The response UNKNOWN_MEMBER_ID or ILLEGAL_GENERATION means that the coordinator has removed the member from the
group. All partitions of the member are then *lost*: they may already belong to other members.

If `max_poll_interval` seconds pass without a poll, the member leaves the group with a LeaveGroup request. A
static member does not send this request. It only stops sending heartbeats, and the coordinator removes the
member when the member's session expires.

Source: Kafka's `AbstractCoordinator` and `ConsumerCoordinator`; KIP-62, KIP-345, KIP-394, KIP-429.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from hmb.client.backoff import Backoff
from hmb.client.group import member_metadata
from hmb.client.group.assignors import are_cooperative
from hmb.client.group.classic_requests import heartbeat_request, join_request, leave_request, sync_request
from hmb.client.group.errors import TRY_AGAIN, group_error
from hmb.client.group.interface import GroupMetadata, MemberSettings
from hmb.client.group.leader import GroupLeader
from hmb.client.group.member import (
    NEVER,
    NO_PARTITIONS,
    ListenerCall,
    ListenerMethod,
    Owned,
    TopicLookup,
    TopicLookupResult,
    warn_of_missing_polls,
)
from hmb.client.group.member_states import CLASSIC_MEMBER, ClassicMemberEvent, ClassicMemberState
from hmb.client.group.owned import OwnedPartitions
from hmb.protocol.enums import NO_GENERATION
from hmb.protocol.errors import ErrorCode, KafkaError, ProtocolError
from hmb.protocol.messages.heartbeat import HeartbeatResponse
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from hmb.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from hmb.protocol.schema import Request

LOGGER = logging.getLogger(__name__)
REMOVED_FROM_GROUP = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


# In these states, a member sends heartbeats. In JOINING and SYNCING, it sends none, because its waiting request shows
# that the member is alive. In ASSIGNING, it sends none, because this state takes only a short time.
HEARTBEATING = frozenset(
    {ClassicMemberState.UNJOINED, ClassicMemberState.APPLYING, ClassicMemberState.STABLE}
)


class ClassicGroupMember:
    """A `GroupMember` that uses the classic protocol.

    The generation is -1 until the member has joined. Only the method `call_finished` changes `assignment`.
    """

    def __init__(self, settings: MemberSettings) -> None:
        self._settings = settings
        self._is_cooperative = are_cooperative(settings.assignors)
        self.error: KafkaError | None = None
        self.state = ClassicMemberState.UNJOINED
        self._member_id, self._generation, self._protocol = "", NO_GENERATION, ""
        self._topics: frozenset[str] | None = None  # None before the first call of `subscribe`
        self._owned = OwnedPartitions()
        self._target = NO_PARTITIONS  # the partitions in the last SyncGroup response
        self._target_generation = NO_GENERATION  # the generation of the last SyncGroup response
        self._is_lost = False  # True from the moment when the member loses its partitions until `on_lost` is called
        self._must_rejoin = False  # whether another rebalance must follow the present rebalance
        self._leader: GroupLeader | None = None  # None while another member leads the group
        self._backoff = Backoff(settings.retry_backoff)
        self._heartbeat_at = self._leave_at = NEVER

    @property
    def metadata(self) -> GroupMetadata:
        return GroupMetadata(
            self._settings.group_id, self._generation, self._member_id, self._settings.group_instance_id
        )

    @property
    def assignment(self) -> Owned:
        return self._owned.partitions

    @property
    def is_member(self) -> bool:
        return self._generation >= 0

    @property
    def is_stable(self) -> bool:
        return self._topics is None or (self.state is ClassicMemberState.STABLE and not self._is_lost)

    def subscribe(self, topics: Collection[str]) -> None:
        if self._topics != frozenset(topics):
            self._topics = frozenset(topics)
            self._rebalance()

    # -- called by the consumer's thread

    def polled(self, now: float) -> None:
        self._leave_at = now + self._settings.max_poll_interval

    def next_call(self) -> ListenerCall | None:
        if self._is_lost and (call := self._owned.lose_all()) is not None:
            return call
        self._is_lost = False
        if self.error is not None:
            return None
        if self.state is ClassicMemberState.UNJOINED and self._topics is not None:
            call = self._owned.revoke_all_except(self._kept_while_joining(self._topics))
            if call is None:
                self._must_rejoin = False
                self._change(ClassicMemberEvent.READY_TO_JOIN)
            return call
        if self.state is ClassicMemberState.APPLYING:
            return self._owned.revoke_all_except(self._target) or self._owned.assign_all(self._target)
        return None

    def last_call(self) -> ListenerCall | None:
        return self._owned.lose_all() if self._is_lost else self._owned.revoke_all_except(NO_PARTITIONS)

    def call_finished(self, call: ListenerCall) -> None:
        self._owned.call_finished(call)
        if self.state is not ClassicMemberState.APPLYING:
            return
        if call.method is ListenerMethod.ON_REVOKED:
            self._must_rejoin = True
        elif call.method is ListenerMethod.ON_ASSIGNED:
            more = self._must_rejoin
            self._change(ClassicMemberEvent.APPLIED_IN_PART if more else ClassicMemberEvent.APPLIED)

    def commit_refused(self, code: ErrorCode, identity: GroupMetadata) -> None:
        if identity == self.metadata and self.state in HEARTBEATING:
            self._heartbeat_refused(code)

    def leave_request(self, reason: str = "the consumer was closed") -> Request | None:
        if not self._member_id or self._settings.group_instance_id is not None:
            return None  # A static member stays in the group until its session expires.
        return leave_request(self.metadata, reason)

    # -- called by the membership's thread

    def next_request(self, now: float) -> Request | TopicLookup | None:
        if self.error is not None or now < self._backoff.retry_at:
            return None
        if self.state in HEARTBEATING:
            return self._heartbeat(now) if self._generation >= 0 else None
        if self.state is ClassicMemberState.JOINING:
            protocols = member_metadata.subscriptions(
                self._settings.assignors, self._topics or (), self.assignment, self._target, self._target_generation
            )
            return join_request(self._settings, self._member_id, protocols)
        if self.state is ClassicMemberState.ASSIGNING and self._leader is not None:
            return self._leader.lookup()
        return sync_request(self.metadata, self._protocol, self._leader.assignments if self._leader else {})

    def deadline(self) -> float:
        if self.error is not None or (self.state in HEARTBEATING and self._generation < 0):
            return NEVER
        if self.state not in HEARTBEATING:
            return self._backoff.retry_at
        due = min(self._heartbeat_at, self._leave_at, self._leader.lookup_at if self._leader else NEVER)
        return max(due, self._backoff.retry_at)

    def response_timeout(self, request: Request) -> float | None:
        """Return the timeout (seconds) for a response. Responses to JoinGroup and SyncGroup have a longer timeout.

        The coordinator responds to JoinGroup and SyncGroup only after all members have joined. The slowest member may
        need up to `max_poll_interval` seconds to join.
        """
        waits = isinstance(request, JoinGroupRequest | SyncGroupRequest)
        return self._settings.max_poll_interval + self._settings.request_timeout if waits else None

    def response_received(self, request: Request | TopicLookup, response: Any, now: float) -> None:
        match response:
            case JoinGroupResponse():
                self._join_answered(response, now)
            case TopicLookupResult():
                self._lookup_answered(response, now)
            case SyncGroupResponse():
                self._sync_answered(response, now)
            case HeartbeatResponse():
                self._heartbeat_answered(response, now)
        self._backoff.response_received(now)

    def request_failed(self, now: float) -> None:
        self._backoff.failed(now)

    def fail(self, error: KafkaError) -> None:
        self.error = error
        self._is_lost = True  # The member sends no more heartbeats, so other members will get its partitions.

    # -- requests

    def _heartbeat(self, now: float) -> Request | TopicLookup | None:
        if now >= self._leave_at:
            warn_of_missing_polls(self._settings)
            request = self.leave_request("the consumer has not polled for max_poll_interval")
            self._removed(ErrorCode.UNKNOWN_MEMBER_ID)
            return request
        if now >= self._heartbeat_at:
            return heartbeat_request(self.metadata)
        return self._leader.lookup() if self._leader and now >= self._leader.lookup_at else None

    # -- responses

    def _join_answered(self, response: JoinGroupResponse, now: float) -> None:
        match response.error_code:
            case ErrorCode.NONE:
                self._joined(response, now)
            case ErrorCode.MEMBER_ID_REQUIRED:
                self._member_id = response.member_id
            case ErrorCode.REBALANCE_IN_PROGRESS:
                self.request_failed(now)
            case code:
                self._join_or_sync_refused(code, now)

    def _joined(self, response: JoinGroupResponse, now: float) -> None:
        self._member_id, self._generation = response.member_id, response.generation_id
        self._protocol = response.protocol_name or ""
        if self._protocol not in self._settings.assignors:
            self._fail(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            return
        is_leader = response.leader == response.member_id
        self._heartbeat_at = now + self._settings.heartbeat_interval
        try:
            members = list(response.members)
            self._leader = GroupLeader(self._settings, self._protocol, members, now) if is_leader else None
        except ProtocolError as error:
            self._fail_unreadable(error)
            return
        # `skip_assignment` is true if the leader is a static member that has restarted (KIP-814). The coordinator still
        # has the assignment of this generation, so the leader must not assign the partitions again.
        must_assign = is_leader and not response.skip_assignment
        self._change(ClassicMemberEvent.JOINED_AS_LEADER if must_assign else ClassicMemberEvent.JOINED)

    def _lookup_answered(self, result: TopicLookupResult, now: float) -> None:
        if self._leader is None:
            return  # The group removed this member after the member sent the lookup.
        has_changed = self._leader.looked_up(dict(result.counts), now)
        if self.state is ClassicMemberState.ASSIGNING:
            self._leader.assign()
            self._change(ClassicMemberEvent.ASSIGNED)
        elif has_changed:
            LOGGER.info("group %r: its topics have changed, so it rebalances", self._settings.group_id)
            self._rebalance()

    def _sync_answered(self, response: SyncGroupResponse, now: float) -> None:
        if response.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._change(ClassicMemberEvent.SYNC_INTERRUPTED)
        elif response.error_code:
            self._join_or_sync_refused(response.error_code, now)
        else:
            try:
                self._target = member_metadata.parse_assignment(response.assignment)
            except ProtocolError as error:
                self._fail_unreadable(error)
                return
            self._target_generation = self._generation
            self._heartbeat_at = now + self._settings.heartbeat_interval
            self._change(ClassicMemberEvent.SYNCED)

    def _heartbeat_answered(self, response: HeartbeatResponse, now: float) -> None:
        if self.state not in HEARTBEATING:
            return  # The member began to join again after it sent this heartbeat.
        self._heartbeat_at = now + self._settings.heartbeat_interval
        if response.error_code in TRY_AGAIN:
            self.request_failed(now)
            self._heartbeat_at = self._backoff.retry_at
        else:
            self._heartbeat_refused(response.error_code)

    def _heartbeat_refused(self, code: int) -> None:
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._rebalance()
        elif code in REMOVED_FROM_GROUP:
            self._removed(code)
        elif code:
            self._fail(code)

    def _join_or_sync_refused(self, code: int, now: float) -> None:
        if code in TRY_AGAIN:
            self.request_failed(now)
        elif code in REMOVED_FROM_GROUP:
            self._removed(code)
        else:
            self._fail(code)

    # -- changes of the state

    def _change(self, event: ClassicMemberEvent) -> None:
        self.state = CLASSIC_MEMBER.next(self.state, event)

    def _kept_while_joining(self, topics: Collection[str]) -> Owned:
        """Return the partitions that the member keeps while it joins.

        A cooperative member keeps the partitions of `topics`. An eager member keeps none.
        """
        if not self._is_cooperative:
            return NO_PARTITIONS
        return frozenset(it for it in self.assignment if it.topic in topics)

    def _rebalance(self) -> None:
        """Let the member join again. If a rebalance is already in progress, the member joins again after its end."""
        if CLASSIC_MEMBER.allows(self.state, ClassicMemberEvent.REBALANCE_DUE):
            self._change(ClassicMemberEvent.REBALANCE_DUE)
        else:
            self._must_rejoin = True

    def _removed(self, code: int) -> None:
        """Mark all partitions as lost, and join again. `code` is the coordinator's error.

        After UNKNOWN_MEMBER_ID, the member joins without a member id. After ILLEGAL_GENERATION, the member joins with
        its old member id.
        """
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""
        self._generation, self._leader = NO_GENERATION, None
        self._target, self._target_generation = NO_PARTITIONS, NO_GENERATION
        self._is_lost = True
        self._change(ClassicMemberEvent.REMOVED)

    def _fail(self, code: int) -> None:
        self.fail(group_error(self._settings, code))

    def _fail_unreadable(self, error: ProtocolError) -> None:
        """Store a fatal error, because bytes from another member are malformed."""
        what = f"group {self._settings.group_id!r}: a member's subscription cannot be read: {error}"
        self.fail(KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, what))
