"""A member of a group that uses the consumer protocol (KIP-848).

The problem: during a rebalance of a classic group, every member waits for the slowest member. The idea: the coordinator
assigns the partitions, and no member waits for another member. A heartbeat response contains the partitions that the
member must own. The member *reconciles*: it gives up the partitions that are not in the response, and takes over the
new partitions. For example, a member owns the partitions a1 and a2 of the topic a:
    heartbeat response   epoch 7, assignment {a0, a1}
    calls                on_revoked(a2), on_assigned(a0)       by the consumer's thread, while it polls
    next heartbeat       epoch 7, owned partitions {a0, a1}    now the coordinator may assign a2 to another member

The coordinator assigns a partition to a member only after the previous owner has given the partition up. So a member
can read each newly assigned partition immediately. Each member has an *epoch*, a number that replaces the generation of
the classic protocol. Three epochs in a request have a special meaning:
     0   the member joins the group
    -1   the member leaves the group
    -2   a static member stops, and can join again later

A member has these states:
    UNSUBSCRIBED   The consumer has not subscribed to anything yet.
    JOINING        The member joins the group: its next heartbeat has epoch 0.
    RECONCILING    The member does not yet own exactly the partitions of its latest assignment.
    STABLE         The member owns exactly the partitions of its assignment.
    FENCED         The coordinator has removed the member, or the consumer has not polled for `max_poll_interval`.
                   The member's partitions are lost. The next poll calls `on_lost`, and then the member joins again.
    FATAL          An error has occurred that a retry cannot solve. The member sends no more requests.

Assignments contain topic ids. The member sends a Metadata request to find the names of the topics (module `topic_ids`).
The member stays in the state RECONCILING until it knows all names.

Limits: in the consumer protocol, a member may subscribe to topics with a regular expression. The coordinator then finds
the topics that match. HMB's client does not use this. Instead, the client requests the metadata of all topics at
regular intervals. It finds the matching topics itself, and sends their names to the coordinator. The consumer therefore
begins to read a new topic only after the client's next metadata request.

Source: KIP-848, KIP-1082 (the member chooses its own id); Kafka's `ConsumerMembershipManager`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from uuid import uuid4

from hmb.client.backoff import Backoff
from hmb.client.group.errors import FENCED_CODES, TRY_AGAIN, group_error
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
from hmb.client.group.owned import OwnedPartitions
from hmb.client.group.topic_ids import AssignmentById
from hmb.protocol.enums import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from hmb.protocol.schema import Request

# The states in which the member sends no heartbeats.
SILENT = frozenset({ConsumerMemberState.UNSUBSCRIBED, ConsumerMemberState.FENCED, ConsumerMemberState.FATAL})
LOSING = frozenset({ConsumerMemberState.FENCED, ConsumerMemberState.FATAL})


class ConsumerGroupMember:
    """A `GroupMember` that uses the consumer protocol (KIP-848).

    The member owns only partitions that the coordinator has assigned to it. If member A owns a partition, the
    coordinator assigns it to member B only after A has given it up or was removed from the group.
    """

    def __init__(self, settings: MemberSettings) -> None:
        self._settings = settings
        self.error: KafkaError | None = None
        self.state = ConsumerMemberState.UNSUBSCRIBED
        self._member_id, self._epoch = str(uuid4()), JOIN_EPOCH
        self._topics: frozenset[str] = frozenset()
        self._owned = OwnedPartitions()
        self._target = AssignmentById()
        self._must_call_assigned = False  # whether `on_assigned` must be called
        # The topics that the coordinator last received from this member. The value is None if the member does not know
        # these topics, for example after a lost response.
        self._sent_topics: frozenset[str] | None = None
        self._sent_owned: Owned | None = NO_PARTITIONS
        self._backoff = Backoff(settings.retry_backoff)
        # The time in seconds between two heartbeats. Until the first heartbeat response, this is the consumer's
        # setting. Then each successful response sets the time.
        self._interval = settings.heartbeat_interval
        self._heartbeat_at = -NEVER
        # If no `poll` comes before this time, the member leaves the group. NEVER means that the member is not in the
        # group, and joins only after the next `poll`.
        self._leave_at = NEVER

    @property
    def metadata(self) -> GroupMetadata:
        return GroupMetadata(self._settings.group_id, self._epoch, self._member_id, self._settings.group_instance_id)

    @property
    def assignment(self) -> Owned:
        return self._owned.partitions

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
        if self.state in LOSING and (call := self._owned.lose_all()) is not None:
            return call
        if self.state is ConsumerMemberState.FENCED:
            self._change(ConsumerMemberEvent.LOSS_HANDLED)
        if self.state is not ConsumerMemberState.RECONCILING:
            return None
        target = self._target.partitions
        call = self._owned.revoke_all_except(target)
        if call is not None or not self._target.has_looked_up:
            return call
        if self._must_call_assigned or target != self.assignment:
            return self._owned.assign_all(target)
        if not self._target.unnamed:
            self._change(ConsumerMemberEvent.RECONCILED)
        return None

    def last_call(self) -> ListenerCall | None:
        return self._owned.lose_all() if self.state in LOSING else self._owned.revoke_all_except(NO_PARTITIONS)

    def call_finished(self, call: ListenerCall) -> None:
        self._owned.call_finished(call)
        if call.method is ListenerMethod.ON_ASSIGNED:
            self._must_call_assigned = False

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
            warn_of_missing_polls(self._settings)
            request = self.leave_request()
            self._removed()
            self._leave_at = NEVER
            return request
        if self._needs_names() and now >= self._target.lookup_at:
            return TopicLookup(ids=self._target.unnamed)
        return self._heartbeat() if self._has_changes() or now >= self._heartbeat_at else None

    def deadline(self) -> float:
        if self.state in SILENT or self._leave_at == NEVER:
            return NEVER
        due = -NEVER if self._has_changes() else min(self._heartbeat_at, self._leave_at)
        return max(min(due, self._target.lookup_at) if self._needs_names() else due, self._backoff.retry_at)

    def response_timeout(self, request: Request) -> float | None:
        return None

    def response_received(self, request: Request | TopicLookup, response: Any, now: float) -> None:
        if isinstance(response, TopicLookupResult):
            self._target.looked_up(response.names, now + self._interval)
        # If the member left the group or was removed during the request, its epoch is now different. The response then
        # belongs to the old membership, so ignore it.
        elif isinstance(request, ConsumerGroupHeartbeatRequest) and request.member_epoch == self._epoch:
            self._heartbeat_answered(request, response, now)
        self._backoff.response_received(now)

    def request_failed(self, now: float) -> None:
        """Handle a failed request: wait before the next request.

        A heartbeat usually contains only the fields that have changed since the previous heartbeat. After a failure,
        the member does not know which fields the coordinator has received. The next heartbeat therefore contains all
        fields.
        """
        self._sent_topics, self._sent_owned = None, None
        self._backoff.failed(now)

    def fail(self, error: KafkaError) -> None:
        self.error = error
        self._change(ConsumerMemberEvent.FAILED)

    # -- heartbeats

    def _needs_names(self) -> bool:
        """Return True if the member must still look up the names of assigned topics.

        An assignment contains topic ids, but the consumer needs topic names. The member can take over the partitions of
        a topic only when it knows the name of the topic.
        """
        return self.state is ConsumerMemberState.RECONCILING and bool(self._target.unnamed)

    def _has_changes(self) -> bool:
        """Return True if the member must report a change now, in a heartbeat before the regular interval ends."""
        return not self.is_member or self._topics != self._sent_topics or self._must_send_owned()

    def _must_send_owned(self) -> bool:
        """Return True if the next heartbeat must contain the partitions that the member owns.

        There are two cases:

        - A heartbeat has failed, so the member does not know whether the coordinator has received these partitions.
        - The member's partitions have changed since the member last sent them, and the change is complete. The member
          is then not in the state RECONCILING any more.
        """
        if self._sent_owned is None:
            return True
        return self._sent_owned != self.assignment and self.state is not ConsumerMemberState.RECONCILING

    def _heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        settings, request = self._settings, self._request(self._epoch)
        if not self.is_member or self._topics != self._sent_topics:
            request.subscribed_topic_names = sorted(self._topics)
            request.rebalance_timeout_ms = int(settings.max_poll_interval * 1000)
            request.server_assignor = settings.remote_assignor
        if not self.is_member or self._must_send_owned():
            request.topic_partitions = self._target.by_id(self.assignment)
        return request

    def _request(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self._settings.group_id,
            member_id=self._member_id,
            member_epoch=epoch,
            instance_id=self._settings.group_instance_id,
        )

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
            self._sent_owned = self._target.named({it.topic_id: it.partitions for it in request.topic_partitions})
        self._member_id = response.member_id or self._member_id
        self._epoch = response.member_epoch
        self._interval = response.heartbeat_interval_ms / 1000
        self._heartbeat_at = now + self._interval
        if response.assignment is not None:
            self._target.replace(response.assignment.topic_partitions, now)
            self._must_call_assigned = True
            self._change(ConsumerMemberEvent.ASSIGNMENT_RECEIVED)
        elif self.state is ConsumerMemberState.JOINING:
            self._change(ConsumerMemberEvent.JOINED)

    def _removed(self) -> None:
        """Mark all partitions as lost. The member joins again after `on_lost` has been called for these partitions."""
        self._epoch = JOIN_EPOCH
        self._sent_topics, self._sent_owned = None, None
        self._change(ConsumerMemberEvent.REMOVED)

    def _change(self, event: ConsumerMemberEvent) -> None:
        self.state = CONSUMER_MEMBER.next(self.state, event)
