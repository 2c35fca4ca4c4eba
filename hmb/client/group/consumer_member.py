"""A member of a group that uses the consumer protocol (KIP-848).

The problem: during a rebalance of a classic group, every member waits for the slowest member. The idea: the coordinator
assigns the partitions, and no member waits for another one. A heartbeat response contains the partitions that the
member must own. The member *reconciles*: it gives up the partitions that are not in the response, and takes over the
new partitions. For example, a member owns the partitions a1 and a2:
    heartbeat response   epoch 7, assignment {a0, a1}
    calls                on_revoked(a2), on_assigned(a0)       by the consumer's thread, while it polls
    next heartbeat       epoch 7, owned partitions {a0, a1}    now the coordinator may assign a2 to another member

The coordinator assigns a partition only after its previous owner has given it up. So a member can read each assigned
partition immediately. A number, the member *epoch*, replaces the generation of the classic protocol. In a request,
epoch 0 means that the member joins, and -1 that it leaves. Epoch -2 means that a static member leaves and may return.

A member has these states:
    UNSUBSCRIBED   The consumer has not subscribed to anything yet.
    JOINING        The member joins the group: its next heartbeat has epoch 0.
    RECONCILING    The member does not yet own exactly the partitions of its latest assignment.
    STABLE         The member owns exactly the partitions of its assignment.
    FENCED         The coordinator has removed the member, or the consumer has not polled for `max_poll_interval`.
                   Its partitions are lost. The next poll calls `on_lost`, and then the member joins again.
    FATAL          An error has occurred that a retry cannot solve. The member sends no more requests.

Assignments contain topic ids. The member sends a Metadata request to find the names of the topics. The member stays in
the state RECONCILING until it knows all names.

Limits: the protocol allows a member to subscribe with a regular expression, which the coordinator compares with all
topic names. HMB's client does not use this. The client compares the names itself, and sends the names that match.

Source: KIP-848, KIP-1082 (the member chooses its own id); Kafka's `ConsumerMembershipManager`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from uuid import UUID, uuid4

from hmb.client.backoff import Backoff
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
from hmb.client.group.member_states import CONSUMER_MEMBER, ConsumerMemberEvent, ConsumerMemberState
from hmb.protocol.enums import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from hmb.protocol.schema import Request
from hmb.protocol.topics import TopicPartition

FENCED_CODES = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})
# The states in which the member sends no heartbeats.
SILENT = frozenset({ConsumerMemberState.UNSUBSCRIBED, ConsumerMemberState.FENCED, ConsumerMemberState.FATAL})
LOSING = frozenset({ConsumerMemberState.FENCED, ConsumerMemberState.FATAL})

TopicPartitions = ConsumerGroupHeartbeatRequest.TopicPartitions
Targets = dict[UUID, list[int]]


class ConsumerGroupMember:
    """A `GroupMember` that uses the consumer protocol (KIP-848).

    The member owns only partitions that the coordinator has assigned to this member. The coordinator assigns such a
    partition to another member only after this member has given it up, or has been removed from the group.
    """

    def __init__(self, settings: MemberSettings) -> None:
        self._settings = settings
        self.error: KafkaError | None = None
        self.state = ConsumerMemberState.UNSUBSCRIBED
        self._member_id, self._epoch = str(uuid4()), JOIN_EPOCH
        self._topics: frozenset[str] = frozenset()
        self._assignment = NO_PARTITIONS
        self._targets: Targets = {}  # the latest assignment: topic id -> partitions
        self._assigned_ids: frozenset[UUID] = frozenset()  # the topics of the latest assignment
        self._must_call_assigned = False  # whether `on_assigned` must be called
        self._names: dict[UUID, str] = {}
        self._has_looked_up = True  # whether unknown topic ids have been looked up
        # The topics that the member has sent to the coordinator. None means that the response was lost, so it is
        # unknown whether the coordinator has received them.
        self._sent_topics: frozenset[str] | None = None
        self._sent_owned: Owned | None = NO_PARTITIONS
        self._backoff = Backoff(settings.retry_backoff)
        # The time (seconds) between two heartbeats. The first value is the consumer's setting. Later, the value comes
        # from the last heartbeat response.
        self._interval = settings.heartbeat_interval
        self._heartbeat_at = self._lookup_at = -NEVER
        self._leave_at = NEVER  # NEVER before the first poll, and after the member has left

    @property
    def metadata(self) -> GroupMetadata:
        return GroupMetadata(self._settings.group_id, self._epoch, self._member_id, self._settings.group_instance_id)

    @property
    def assignment(self) -> Owned:
        return self._assignment

    @property
    def is_member(self) -> bool:
        return self._epoch > JOIN_EPOCH

    @property
    def is_stable(self) -> bool:
        return self.state in (ConsumerMemberState.UNSUBSCRIBED, ConsumerMemberState.STABLE)

    def subscribe(self, topics: Collection[str]) -> None:
        self._topics = frozenset(topics)
        if self.state is ConsumerMemberState.UNSUBSCRIBED:
            self._change(ConsumerMemberEvent.SUBSCRIBED)

    # -- called by the consumer's thread

    def polled(self, now: float) -> None:
        self._leave_at = now + self._settings.max_poll_interval

    def next_call(self) -> ListenerCall | None:
        if self.state in LOSING and self._assignment:
            return ListenerCall(ListenerMethod.ON_LOST, self._assignment)
        if self.state is ConsumerMemberState.FENCED:
            self._change(ConsumerMemberEvent.LOSS_HANDLED)
        if self.state is not ConsumerMemberState.RECONCILING:
            return None
        target = self._named(self._targets)
        if self._assignment - target:
            return ListenerCall(ListenerMethod.ON_REVOKED, self._assignment - target)
        if not self._has_looked_up:
            return None
        if target - self._assignment or self._must_call_assigned:
            return ListenerCall(ListenerMethod.ON_ASSIGNED, target - self._assignment)
        if not self._unnamed():
            self._change(ConsumerMemberEvent.RECONCILED)
        return None

    def last_call(self) -> ListenerCall | None:
        method = ListenerMethod.ON_LOST if self.state in LOSING else ListenerMethod.ON_REVOKED
        return ListenerCall(method, self._assignment) if self._assignment else None

    def call_finished(self, call: ListenerCall) -> None:
        if call.method is ListenerMethod.ON_ASSIGNED:
            self._assignment |= call.partitions
            self._must_call_assigned = False
        else:
            self._assignment -= call.partitions

    def commit_refused(self, code: ErrorCode, identity: GroupMetadata) -> None:
        if identity == self.metadata and code in FENCED_CODES and self.state not in LOSING:
            self._removed()

    def leave_request(self) -> Request | None:
        if not self.is_member:
            return None
        is_static = self._settings.group_instance_id is not None
        return self._request(STATIC_LEAVE_EPOCH if is_static else LEAVE_EPOCH)

    # -- called by the membership's thread

    def next_request(self, now: float) -> Request | TopicLookup | None:
        if self.state in SILENT or self._leave_at == NEVER or now < self._backoff.retry_at:
            return None
        if self.is_member and now >= self._leave_at:
            return self._leave()
        unnamed = self._unnamed()
        if unnamed and now >= self._lookup_at:
            return TopicLookup(ids=unnamed)
        return self._heartbeat() if self._has_changes() or now >= self._heartbeat_at else None

    def deadline(self) -> float:
        if self.state in SILENT or self._leave_at == NEVER:
            return NEVER
        due = -NEVER if self._has_changes() else min(self._heartbeat_at, self._leave_at)
        return max(min(due, self._lookup_at) if self._unnamed() else due, self._backoff.retry_at)

    def response_timeout(self, request: Request) -> float | None:
        return None

    def response_received(self, request: Request | TopicLookup, response: Any, now: float) -> None:
        if isinstance(response, TopicLookupResult):
            self._names.update(response.names)
            self._has_looked_up = True
            self._lookup_at = now + self._interval
        # Ignore the response if the member's epoch has changed while the request was in flight. Then the member was
        # removed from the group, or has left it.
        elif isinstance(request, ConsumerGroupHeartbeatRequest) and request.member_epoch == self._epoch:
            self._heartbeat_answered(request, response, now)
        self._backoff.answered(now)

    def request_failed(self, now: float) -> None:
        """Start a pause. The next heartbeat contains all fields, because the failed heartbeat may be lost."""
        self._sent_topics, self._sent_owned = None, None
        self._backoff.failed(now)

    def fail(self, error: KafkaError) -> None:
        self.error = error
        self._change(ConsumerMemberEvent.FAILED)

    # -- heartbeats

    def _has_changes(self) -> bool:
        """Return True if the member must send a heartbeat now, before the regular interval is over."""
        return not self.is_member or self._topics != self._sent_topics or self._must_send_owned()

    def _must_send_owned(self) -> bool:
        """Return True if the next heartbeat must list the owned partitions.

        If a response was lost, the next heartbeat must list the owned partitions. If the owned partitions have changed,
        the member first finishes giving up and taking over partitions. Then the next heartbeat must list the owned
        partitions.
        """
        if self._sent_owned is None:
            return True
        return self._sent_owned != self._assignment and self.state is not ConsumerMemberState.RECONCILING

    def _heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        settings, request = self._settings, self._request(self._epoch)
        if not self.is_member or self._topics != self._sent_topics:
            request.subscribed_topic_names = sorted(self._topics)
            request.rebalance_timeout_ms = int(settings.max_poll_interval * 1000)
            request.server_assignor = settings.remote_assignor
        if not self.is_member or self._must_send_owned():
            request.topic_partitions = self._by_id(self._assignment)
        return request

    def _request(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self._settings.group_id,
            member_id=self._member_id,
            member_epoch=epoch,
            instance_id=self._settings.group_instance_id,
        )

    def _leave(self) -> Request | None:
        warn_of_missing_polls(self._settings)
        request = self.leave_request()
        self._removed()
        self._leave_at = NEVER
        return request

    def _heartbeat_answered(
        self, request: ConsumerGroupHeartbeatRequest, response: ConsumerGroupHeartbeatResponse, now: float
    ) -> None:
        code = response.error_code
        if code in TRY_AGAIN:
            self.request_failed(now)
        elif code in FENCED_CODES:
            self._removed()
        elif code:
            self.fail(group_error(self._settings, code, response.error_message))
        else:
            self._heartbeat_accepted(request, response, now)

    def _heartbeat_accepted(
        self, request: ConsumerGroupHeartbeatRequest, response: ConsumerGroupHeartbeatResponse, now: float
    ) -> None:
        if request.subscribed_topic_names is not None:
            self._sent_topics = frozenset(request.subscribed_topic_names)
        if request.topic_partitions is not None:
            owned = {each.topic_id: each.partitions for each in request.topic_partitions}
            self._sent_owned = self._named(owned)
        self._member_id = response.member_id or self._member_id
        self._epoch = response.member_epoch
        self._interval = response.heartbeat_interval_ms / 1000
        self._heartbeat_at = now + self._interval
        if response.assignment is not None:
            self._targets = {each.topic_id: each.partitions for each in response.assignment.topic_partitions}
            self._assigned_ids = frozenset(self._targets)
            self._must_call_assigned = True
            self._change(ConsumerMemberEvent.ASSIGNMENT_RECEIVED)
            self._has_looked_up, self._lookup_at = not self._unnamed(), now
        elif self.state is ConsumerMemberState.JOINING:
            self._change(ConsumerMemberEvent.JOINED)

    def _removed(self) -> None:
        """Mark all partitions as lost. The member joins again after `on_lost` has been called for these partitions."""
        self._epoch = JOIN_EPOCH
        self._sent_topics, self._sent_owned = None, None
        self._change(ConsumerMemberEvent.REMOVED)

    def _change(self, event: ConsumerMemberEvent) -> None:
        self.state = CONSUMER_MEMBER.next(self.state, event)

    # -- topic names

    def _unnamed(self) -> frozenset[UUID]:
        """Return the ids of the assigned topics whose names the member does not know yet."""
        if self.state is not ConsumerMemberState.RECONCILING:
            return frozenset()
        return frozenset(self._targets) - self._names.keys()

    def _named(self, targets: Targets) -> Owned:
        return frozenset(
            TopicPartition(self._names[topic_id], number)
            for topic_id, numbers in targets.items()
            if topic_id in self._names
            for number in numbers
        )

    def _by_id(self, owned: Owned) -> list[TopicPartitions]:
        topics: dict[UUID, list[int]] = {}
        # If a topic was deleted and created again, two ids have the same name. The id in the latest assignment is
        # valid. It comes last, so that it replaces the old id.
        by_age = sorted(self._names, key=lambda topic_id: topic_id in self._assigned_ids)
        ids = {self._names[topic_id]: topic_id for topic_id in by_age}
        for name, number in sorted(owned):
            topics.setdefault(ids[name], []).append(number)
        return [TopicPartitions(topic_id=topic_id, partitions=numbers) for topic_id, numbers in topics.items()]
