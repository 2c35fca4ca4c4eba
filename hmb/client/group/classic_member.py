"""A member of a classic group: joins the group, receives its partitions from the leader, and sends heartbeats.

The problem: the members must divide the partitions among themselves, although they do not know each other. The idea:
the coordinator waits until all members have joined. This wait is called the *barrier*. Then one member, the *leader*,
assigns the partitions to all members. Each rebalance starts a new *generation* of the group. During one rebalance, a
member passes through these states:
    UNJOINED    The consumer gives up partitions before it joins. An *eager* member gives up all partitions. A
                *cooperative* member gives up only partitions of topics that it no longer subscribes to.
    JOINING     JoinGroup waits at the coordinator until all members have joined. This is the barrier.
    ASSIGNING   Only the leader has this state: it looks up the topics of all members, and calls the assignor.
    SYNCING     SyncGroup waits at the coordinator until the leader has sent the assignment.
    APPLYING    The consumer takes over its new partitions. A cooperative member gives up the partitions that move to
                other members, and then joins again.
    STABLE      The consumer reads its partitions.

A member leaves the states UNJOINED and APPLYING only after the consumer's thread has called the rebalance listener. The
consumer's thread calls the listener when the consumer polls. Until then, the membership thread continues to send
heartbeats, so that a slow consumer stays a member. In JOINING and SYNCING, a request of the member waits at the
coordinator. This request already shows that the member is alive, so the member sends no heartbeats.

A member joins again in three cases. First, the coordinator responds to a heartbeat with REBALANCE_IN_PROGRESS. Second,
the consumer changes its subscription. Third, the member is the leader, and the number of partitions of a topic has
changed. The response UNKNOWN_MEMBER_ID or ILLEGAL_GENERATION means that the coordinator has removed the member from the
group. All partitions of the member are then *lost*: they may already belong to other members.

If the consumer has not polled for `max_poll_interval`, the member leaves the group. The member then sends a LeaveGroup
request. A static member sends no LeaveGroup request, but only stops sending heartbeats.

Source: Kafka's `AbstractCoordinator` and `ConsumerCoordinator`; KIP-62, KIP-345, KIP-394, KIP-429.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Any

from hmb.client.backoff import Backoff
from hmb.client.group import member_metadata
from hmb.client.group.assignors import are_cooperative
from hmb.client.group.errors import TRY_AGAIN, group_error
from hmb.client.group.interface import GroupMetadata, MemberSettings
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
from hmb.protocol.consumer_protocol import CONSUMER
from hmb.protocol.enums import NO_GENERATION
from hmb.protocol.errors import ErrorCode, KafkaError, ProtocolError
from hmb.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from hmb.protocol.messages.leave_group import LeaveGroupRequest
from hmb.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from hmb.protocol.schema import Request

LOGGER = logging.getLogger(__name__)
REMOVED_FROM_GROUP = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


# The states in which a member sends heartbeats. In JOINING and SYNCING, a request of the member waits at the
# coordinator, and shows that the member is alive. ASSIGNING takes only a short time, so no heartbeats are needed.
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
        self._assignment = NO_PARTITIONS
        self._target = NO_PARTITIONS  # the partitions in the last SyncGroup response
        self._target_generation = NO_GENERATION  # the generation of the last SyncGroup response
        self._is_lost = False  # True until `on_lost` has been called for lost partitions
        self._must_rejoin = False  # whether another rebalance must follow this one
        self._members: list[member_metadata.JoinedMember] = []  # all members if this one is the leader, or else empty
        self._counts: dict[str, int] | None = None  # the leader's last lookup: topic -> number of partitions
        self._assignments: dict[str, bytes] = {}  # only the leader: member id -> assignment
        self._backoff = Backoff(settings.retry_backoff)
        self._heartbeat_at = self._lookup_at = self._leave_at = NEVER

    @property
    def metadata(self) -> GroupMetadata:
        return GroupMetadata(
            self._settings.group_id, self._generation, self._member_id, self._settings.group_instance_id
        )

    @property
    def assignment(self) -> Owned:
        return self._assignment

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
        if self._is_lost and self._assignment:
            return ListenerCall(ListenerMethod.ON_LOST, self._assignment)
        self._is_lost = False
        if self.error is not None:
            return None
        if self.state is ClassicMemberState.UNJOINED and self._topics is not None:
            given_up = frozenset(it for it in self._assignment if not self._may_keep(it.topic))
            if given_up:
                return ListenerCall(ListenerMethod.ON_REVOKED, given_up)
            self._must_rejoin = False
            self._change(ClassicMemberEvent.READY_TO_JOIN)
        elif self.state is ClassicMemberState.APPLYING:
            given_up = self._assignment - self._target
            if given_up:
                return ListenerCall(ListenerMethod.ON_REVOKED, given_up)
            return ListenerCall(ListenerMethod.ON_ASSIGNED, self._target - self._assignment)
        return None

    def last_call(self) -> ListenerCall | None:
        method = ListenerMethod.ON_LOST if self._is_lost else ListenerMethod.ON_REVOKED
        return ListenerCall(method, self._assignment) if self._assignment else None

    def call_finished(self, call: ListenerCall) -> None:
        is_applying = self.state is ClassicMemberState.APPLYING
        if call.method is ListenerMethod.ON_ASSIGNED:
            self._assignment |= call.partitions
            if is_applying:
                more = self._must_rejoin
                self._change(ClassicMemberEvent.APPLIED_IN_PART if more else ClassicMemberEvent.APPLIED)
        else:
            self._assignment -= call.partitions
            self._must_rejoin |= call.method is ListenerMethod.ON_REVOKED and is_applying

    def commit_refused(self, code: ErrorCode, identity: GroupMetadata) -> None:
        if identity == self.metadata and self.state in HEARTBEATING:
            self._heartbeat_answered(code)

    def leave_request(self, reason: str = "the consumer was closed") -> Request | None:
        if not self._member_id or self._settings.group_instance_id is not None:
            return None  # A static member stays in the group until its session expires.
        leaving = LeaveGroupRequest.MemberIdentity(member_id=self._member_id, reason=reason)
        return LeaveGroupRequest(group_id=self._settings.group_id, members=[leaving])

    # -- called by the membership's thread

    def next_request(self, now: float) -> Request | TopicLookup | None:
        if self.error is not None or now < self._backoff.retry_at:
            return None
        if self.state in HEARTBEATING:
            return self._heartbeat(now) if self._generation >= 0 else None
        if self.state is ClassicMemberState.JOINING:
            return self._join_request()
        return self._lookup() if self.state is ClassicMemberState.ASSIGNING else self._sync_request()

    def deadline(self) -> float:
        if self.error is not None or (self.state in HEARTBEATING and self._generation < 0):
            return NEVER
        if self.state not in HEARTBEATING:
            return self._backoff.retry_at
        due = min(self._heartbeat_at, self._leave_at, self._lookup_at if self._members else NEVER)
        return max(due, self._backoff.retry_at)

    def response_timeout(self, request: Request) -> float | None:
        """Return the timeout (seconds) for a response. JoinGroup and SyncGroup have a longer timeout.

        The coordinator responds to JoinGroup and SyncGroup only after all members have joined. The slowest member may
        need `max_poll_interval` to join.
        """
        waits = isinstance(request, JoinGroupRequest | SyncGroupRequest)
        return self._settings.max_poll_interval + self._settings.request_timeout if waits else None

    def response_received(self, request: Request | TopicLookup, response: Any, now: float) -> None:
        steps: dict[type, Callable[[Any, float], None]] = {
            JoinGroupResponse: self._join_answered,
            SyncGroupResponse: self._sync_answered,
            TopicLookupResult: self._lookup_answered,
            HeartbeatResponse: self._heartbeat_response,
        }
        step = steps.get(type(response))  # None for a LeaveGroup response
        if step is not None:
            step(response, now)
        self._backoff.answered(now)

    def request_failed(self, now: float) -> None:
        self._backoff.failed(now)

    def fail(self, error: KafkaError) -> None:
        self.error = error
        self._is_lost = True  # No heartbeats follow, so other members will get the partitions.

    # -- requests

    def _join_request(self) -> JoinGroupRequest:
        settings = self._settings
        return JoinGroupRequest(
            group_id=settings.group_id,
            session_timeout_ms=int(settings.session_timeout * 1000),
            rebalance_timeout_ms=int(settings.max_poll_interval * 1000),
            member_id=self._member_id,
            group_instance_id=settings.group_instance_id,
            protocol_type=CONSUMER,
            protocols=member_metadata.subscriptions(
                settings.assignors, self._topics or (), self._assignment, self._target, self._target_generation
            ),
        )

    def _sync_request(self) -> SyncGroupRequest:
        one = SyncGroupRequest.SyncGroupRequestAssignment
        return SyncGroupRequest(
            group_id=self._settings.group_id,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self._settings.group_instance_id,
            protocol_type=CONSUMER,
            protocol_name=self._protocol,
            assignments=[one(member_id=member_id, assignment=it) for member_id, it in self._assignments.items()],
        )

    def _heartbeat(self, now: float) -> Request | TopicLookup | None:
        if now >= self._leave_at:
            return self._leave()
        if now >= self._heartbeat_at:
            return HeartbeatRequest(
                group_id=self._settings.group_id,
                generation_id=self._generation,
                member_id=self._member_id,
                group_instance_id=self._settings.group_instance_id,
            )
        return self._lookup() if self._members and now >= self._lookup_at else None

    def _leave(self) -> Request | None:
        warn_of_missing_polls(self._settings)
        request = self.leave_request("the consumer has not polled for max_poll_interval")
        self._removed(ErrorCode.UNKNOWN_MEMBER_ID)
        return request

    def _lookup(self) -> TopicLookup:
        return TopicLookup(names=member_metadata.subscribed_topics(self._members))

    # -- responses

    def _join_answered(self, response: JoinGroupResponse, now: float) -> None:
        match response.error_code:
            case ErrorCode.NONE:
                self._barrier_passed(response, now)
            case ErrorCode.MEMBER_ID_REQUIRED:
                self._member_id = response.member_id
            case ErrorCode.REBALANCE_IN_PROGRESS:
                self.request_failed(now)
            case code:
                self._join_or_sync_refused(code, now)

    def _barrier_passed(self, response: JoinGroupResponse, now: float) -> None:
        self._member_id, self._generation = response.member_id, response.generation_id
        self._protocol = response.protocol_name or ""
        if self._protocol not in self._settings.assignors:
            self._fail(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            return
        is_leader = response.leader == response.member_id
        self._members, self._assignments, self._counts = list(response.members) if is_leader else [], {}, None
        self._heartbeat_at = now + self._settings.heartbeat_interval
        self._lookup_at = now
        self._parse(lambda: member_metadata.subscribed_topics(self._members))
        # A static member that restarts can be the leader. The coordinator then still has the assignment, and sets
        # `skip_assignment` (KIP-814). The leader must not assign the partitions again.
        must_assign = is_leader and not response.skip_assignment
        self._change(ClassicMemberEvent.JOINED_AS_LEADER if must_assign else ClassicMemberEvent.JOINED)

    def _lookup_answered(self, result: TopicLookupResult, now: float) -> None:
        counts = dict(result.counts)
        has_all = counts.keys() >= member_metadata.subscribed_topics(self._members)
        self._lookup_at = now + (self._settings.metadata_max_age if has_all else self._settings.heartbeat_interval)
        if self.state is ClassicMemberState.ASSIGNING:
            self._assignments = member_metadata.assign(self._protocol, self._members, counts)
            self._change(ClassicMemberEvent.ASSIGNED)
        elif self._counts is not None and counts != self._counts:
            LOGGER.info("group %r: its topics have changed, so it rebalances", self._settings.group_id)
            self._rebalance()
        self._counts = counts

    def _parse(self, step: Callable[[], object]) -> None:
        """Call `step`, which decodes bytes from other members. If the bytes are malformed, store a fatal error."""
        try:
            step()
        except ProtocolError as error:
            what = f"group {self._settings.group_id!r}: a member's subscription cannot be read: {error}"
            self.fail(KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, what))

    def _sync_answered(self, response: SyncGroupResponse, now: float) -> None:
        if response.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._change(ClassicMemberEvent.SYNC_INTERRUPTED)
        elif response.error_code:
            self._join_or_sync_refused(response.error_code, now)
        else:
            self._parse(lambda: self._take(member_metadata.parse_assignment(response.assignment), now))

    def _take(self, target: Owned, now: float) -> None:
        self._target, self._target_generation = target, self._generation
        self._heartbeat_at = now + self._settings.heartbeat_interval
        self._change(ClassicMemberEvent.SYNCED)

    def _heartbeat_response(self, response: HeartbeatResponse, now: float) -> None:
        if self.state not in HEARTBEATING:
            return  # The member has begun to join after it sent this heartbeat.
        self._heartbeat_at = now + self._settings.heartbeat_interval
        if response.error_code in TRY_AGAIN:
            self.request_failed(now)
            self._heartbeat_at = self._backoff.retry_at
        else:
            self._heartbeat_answered(response.error_code)

    def _heartbeat_answered(self, code: int) -> None:
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

    def _may_keep(self, topic: str) -> bool:
        return self._is_cooperative and topic in (self._topics or ())

    def _rebalance(self) -> None:
        """Begin a rebalance. If a rebalance is already in progress, begin a second rebalance after the first one."""
        if CLASSIC_MEMBER.allows(self.state, ClassicMemberEvent.REBALANCE_DUE):
            self._change(ClassicMemberEvent.REBALANCE_DUE)
        else:
            self._must_rejoin = True

    def _removed(self, code: int) -> None:
        """Mark all partitions as lost, and join again. `code` is the coordinator's error.

        After UNKNOWN_MEMBER_ID, the member joins without a member id. After ILLEGAL_GENERATION, it keeps its member id.
        """
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""
        self._generation, self._members = NO_GENERATION, []
        self._target, self._target_generation = NO_PARTITIONS, NO_GENERATION
        self._is_lost = True
        self._change(ClassicMemberEvent.REMOVED)

    def _fail(self, code: int) -> None:
        self.fail(group_error(self._settings, code))
