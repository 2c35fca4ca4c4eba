"""A member of a classic group: joins, hears from the leader what is its own, heartbeats until it has to join anew.

    UNJOINED    the consumer has to give up what it may not keep while it joins: all if it is *eager*, or if it is
                *cooperative*, what it does not subscribe to any more
    JOINING     JoinGroup waits until all members have joined: the barrier
    ASSIGNING   (the leader) the topics of all members are looked up, and shared out by the assignor agreed on
    SYNCING     SyncGroup brings the assignment
    SYNCED      the consumer has to take it over: a cooperative member gives up what is not in it, and joins again
    STABLE      it has

    UNJOINED -> JOINING -> (ASSIGNING ->) SYNCING -> SYNCED -> STABLE -> UNJOINED ...

The steps out of UNJOINED and SYNCED are the consumer's, so they wait until it polls; heartbeats go on meanwhile, which
is why a slow consumer stays a member. A heartbeat that is answered REBALANCE_IN_PROGRESS leads back to UNJOINED, as
does a change of the subscription, or for the leader a change of the topics. UNKNOWN_MEMBER_ID and ILLEGAL_GENERATION
say that the group went on without this member: all it owned is *lost*.

A consumer that has not polled for `max_poll_interval` leaves; where it is a static member it only falls silent.

Source: Kafka's `AbstractCoordinator`, `ConsumerCoordinator`; KIP-62, KIP-345, KIP-394, KIP-429.
"""

import logging
from collections.abc import Callable, Collection
from enum import Enum, auto
from typing import Any

from hmb.client.group import member_metadata
from hmb.client.group.assignors import are_cooperative
from hmb.client.group.errors import TRY_AGAIN, group_error
from hmb.client.group.interface import GroupMetadata, GroupSettings
from hmb.client.group.member import (
    NEVER,
    NOTHING,
    Backoff,
    Call,
    Event,
    Owned,
    TopicFacts,
    TopicLookup,
    warn_of_silence,
)
from hmb.protocol.consumer_protocol import CONSUMER
from hmb.protocol.errors import ErrorCode, KafkaError, ProtocolError
from hmb.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from hmb.protocol.messages.leave_group import LeaveGroupRequest
from hmb.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from hmb.protocol.schema import Request

LOGGER = logging.getLogger(__name__)
WENT_ON_WITHOUT = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


class Phase(Enum):
    UNJOINED = auto()
    JOINING = auto()
    ASSIGNING = auto()
    SYNCING = auto()
    SYNCED = auto()
    STABLE = auto()


HEARTBEATING = frozenset({Phase.UNJOINED, Phase.SYNCED, Phase.STABLE})  # in the others, requests wait that say as much


class ClassicMember:
    """A `GroupMember`. Invariants: the generation is -1 before it has joined; `assignment` changes in `called` only."""

    def __init__(self, settings: GroupSettings) -> None:
        self._settings = settings
        self._is_cooperative = are_cooperative(settings.assignors)
        self.error: KafkaError | None = None
        self.phase = Phase.UNJOINED
        self._member_id, self._generation, self._protocol = "", -1, ""
        self._topics: frozenset[str] | None = None  # None: it wants nothing yet
        self._assignment = NOTHING
        self._target = NOTHING  # the assignment that came last,
        self._target_generation = -1  # and when
        self._is_lost = False
        self._rejoins = False  # once this rebalance is over
        self._leads: list[member_metadata.JoinedMember] = []  # the members, if this one leads them
        self._counts: dict[str, int] | None = None  # of partitions, as the leader has shared them out
        self._assignments: dict[str, bytes] = {}
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
    def is_settled(self) -> bool:
        return self._topics is None or (self.phase is Phase.STABLE and not self._is_lost)

    def subscribe(self, topics: Collection[str]) -> None:
        if self._topics != frozenset(topics):
            self._topics = frozenset(topics)
            self._rejoin()

    # -- the consumer's thread

    def polled(self, now: float) -> None:
        self._leave_at = now + self._settings.max_poll_interval

    def next_call(self) -> Call | None:
        if self._is_lost and self._assignment:
            return Call(Event.LOST, self._assignment)
        self._is_lost = False
        if self.error is not None:
            return None
        if self.phase is Phase.UNJOINED and self._topics is not None:
            given_up = frozenset(it for it in self._assignment if not self._may_keep(it.topic))
            if given_up:
                return Call(Event.REVOKED, given_up)
            self.phase, self._rejoins = Phase.JOINING, False
        elif self.phase is Phase.SYNCED:
            given_up = self._assignment - self._target
            return Call(Event.REVOKED, given_up) if given_up else Call(Event.ASSIGNED, self._target - self._assignment)
        return None

    def last_call(self) -> Call | None:
        event = Event.LOST if self._is_lost else Event.REVOKED
        return Call(event, self._assignment) if self._assignment else None

    def called(self, call: Call) -> None:
        if call.event is Event.ASSIGNED:
            self._assignment |= call.partitions
            if self.phase is Phase.SYNCED:
                self.phase = Phase.UNJOINED if self._rejoins else Phase.STABLE
        else:
            self._assignment -= call.partitions
            self._rejoins |= call.event is Event.REVOKED and self.phase is Phase.SYNCED

    def commit_refused(self, code: ErrorCode, identity: GroupMetadata) -> None:
        if identity == self.metadata and self.phase in HEARTBEATING:
            self._heartbeat_answered(code)

    def leave_request(self, reason: str = "the consumer was closed") -> Request | None:
        if not self._member_id or self._settings.group_instance_id is not None:
            return None  # a static member's session goes on: it may be back soon
        leaving = LeaveGroupRequest.MemberIdentity(member_id=self._member_id, reason=reason)
        return LeaveGroupRequest(group_id=self._settings.group_id, members=[leaving])

    # -- the membership's thread

    def next_request(self, now: float) -> Request | TopicLookup | None:
        if self.error is not None or now < self._backoff.retry_at:
            return None
        if self.phase in HEARTBEATING:
            return self._heartbeat(now) if self._generation >= 0 else None
        if self.phase is Phase.JOINING:
            return self._join_request()
        return self._lookup() if self.phase is Phase.ASSIGNING else self._sync_request()

    def deadline(self) -> float:
        if self.error is not None or (self.phase in HEARTBEATING and self._generation < 0):
            return NEVER
        if self.phase not in HEARTBEATING:
            return self._backoff.retry_at
        due = min(self._heartbeat_at, self._leave_at, self._lookup_at if self._leads else NEVER)
        return max(due, self._backoff.retry_at)

    def patience(self, request: Request) -> float | None:
        """The barrier waits for the slowest member, and that one has `max_poll_interval` to come."""
        waits = isinstance(request, JoinGroupRequest | SyncGroupRequest)
        return self._settings.max_poll_interval + self._settings.request_timeout if waits else None

    def answered(self, request: Request | TopicLookup, response: Any, now: float) -> None:
        steps: dict[type, Callable[[Any, float], None]] = {
            JoinGroupResponse: self._joined,
            SyncGroupResponse: self._synced,
            TopicFacts: self._looked_up,
            HeartbeatResponse: self._heard,
        }
        step = steps.get(type(response))  # nothing is to be done when it has left
        if step is not None:
            step(response, now)
        self._backoff.answered(now)

    def failed(self, now: float) -> None:
        self._backoff.failed(now)

    def refused(self, error: KafkaError) -> None:
        self.error = error
        self._is_lost = True  # no more heartbeats

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
        return self._lookup() if self._leads and now >= self._lookup_at else None

    def _leave(self) -> Request | None:
        warn_of_silence(self._settings)
        request = self.leave_request("the consumer has not polled for max_poll_interval")
        self._lose(ErrorCode.UNKNOWN_MEMBER_ID)
        return request

    def _lookup(self) -> TopicLookup:
        return TopicLookup(names=member_metadata.wanted_topics(self._leads))

    # -- answers

    def _joined(self, response: JoinGroupResponse, now: float) -> None:
        match response.error_code:
            case ErrorCode.NONE:
                self._barrier_passed(response, now)
            case ErrorCode.MEMBER_ID_REQUIRED:
                self._member_id = response.member_id
            case ErrorCode.REBALANCE_IN_PROGRESS:
                self.failed(now)
            case code:
                self._not_so(code, now)

    def _barrier_passed(self, response: JoinGroupResponse, now: float) -> None:
        self._member_id, self._generation = response.member_id, response.generation_id
        self._protocol = response.protocol_name or ""
        if self._protocol not in self._settings.assignors:
            self._fail(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            return
        leads = response.leader == response.member_id
        self._leads, self._assignments, self._counts = list(response.members) if leads else [], {}, None
        self._heartbeat_at = now + self._settings.heartbeat_interval
        self._lookup_at = now
        self._when_readable(lambda: member_metadata.wanted_topics(self._leads))
        self.phase = Phase.ASSIGNING if leads and not response.skip_assignment else Phase.SYNCING

    def _looked_up(self, facts: TopicFacts, now: float) -> None:
        counts = dict(facts.counts)
        has_all = counts.keys() >= member_metadata.wanted_topics(self._leads)
        self._lookup_at = now + (self._settings.metadata_max_age if has_all else self._settings.heartbeat_interval)
        if self.phase is Phase.ASSIGNING:
            self._assignments = member_metadata.assign(self._protocol, self._leads, counts)
            self.phase = Phase.SYNCING
        elif self._counts is not None and counts != self._counts:
            LOGGER.info("group %r: its topics have changed, so it rebalances", self._settings.group_id)
            self._rejoin()
        self._counts = counts

    def _when_readable(self, step: Callable[[], object]) -> None:
        try:
            step()
        except ProtocolError as error:
            what = f"group {self._settings.group_id!r}: a member's subscription cannot be read: {error}"
            self.refused(KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, what))

    def _synced(self, response: SyncGroupResponse, now: float) -> None:
        if response.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.phase = Phase.UNJOINED
        elif response.error_code:
            self._not_so(response.error_code, now)
        else:
            self._when_readable(lambda: self._take(member_metadata.parse_assignment(response.assignment), now))

    def _take(self, target: Owned, now: float) -> None:
        self._target, self._target_generation = target, self._generation
        self._heartbeat_at = now + self._settings.heartbeat_interval
        self.phase = Phase.SYNCED

    def _heard(self, response: HeartbeatResponse, now: float) -> None:
        if self.phase not in HEARTBEATING:
            return  # it has begun to join meanwhile, and the answer is one to what was before
        self._heartbeat_at = now + self._settings.heartbeat_interval
        if response.error_code in TRY_AGAIN:
            self.failed(now)
            self._heartbeat_at = self._backoff.retry_at
        else:
            self._heartbeat_answered(response.error_code)

    def _heartbeat_answered(self, code: int) -> None:
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._rejoin()
        elif code in WENT_ON_WITHOUT:
            self._lose(code)
        elif code:
            self._fail(code)

    def _not_so(self, code: int, now: float) -> None:
        if code in TRY_AGAIN:
            self.failed(now)
        elif code in WENT_ON_WITHOUT:
            self._lose(code)
        else:
            self._fail(code)

    # -- changes

    def _may_keep(self, topic: str) -> bool:
        return self._is_cooperative and topic in (self._topics or ())

    def _rejoin(self) -> None:
        if self.phase is Phase.STABLE:
            self.phase = Phase.UNJOINED
        else:
            self._rejoins = True

    def _lose(self, code: int) -> None:
        """The group went on without this member; one that it still knows keeps its member id."""
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""
        self._generation, self._leads = -1, []
        self._target, self._target_generation = NOTHING, -1
        self._is_lost = True
        self.phase = Phase.UNJOINED

    def _fail(self, code: int) -> None:
        self.refused(group_error(self._settings, code))
