"""A member of a KIP-848 group: one request, the heartbeat, says what it wants and owns, and hears what it is to own.

The coordinator assigns the partitions, and there is no barrier: nobody waits for anybody. It tells each member its
assignment; where that is not what the member owns, the member *reconciles*, at its own pace::

    heartbeat  <-  epoch 7, assignment {a0, a1}        it owns a1, a2
    on_revoked(a2), on_assigned(a0)                    in the consumer's thread, when it polls
    heartbeat  ->  epoch 7, I own {a0, a1}             only now can a2 go to somebody else

The coordinator names a partition to a member only when its last owner has given it up, so what is new can be taken at
once. *Epochs* take the place of generations: 0 joins, -1 leaves, -2 leaves for a while (a static member). A member that
is fenced has lost everything, and joins again.

Partitions are named by topic ids, of which Metadata tells the names; a topic that has no name yet (or none any more)
waits until it has one.

Source: KIP-848, KIP-1082 (the member chooses its own id); Kafka's `ConsumerMembershipManager`. Left out: subscription
by a regular expression on the broker: expressions are matched here, and the names sent.
"""

from collections.abc import Collection
from typing import Any
from uuid import UUID, uuid4

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
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from hmb.protocol.schema import Request
from hmb.protocol.topics import TopicPartition

JOINS, LEAVES, LEAVES_FOR_A_WHILE = 0, -1, -2
FENCED = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})

TopicPartitions = ConsumerGroupHeartbeatRequest.TopicPartitions
Targets = dict[UUID, list[int]]


class ConsumerMember:
    """A `GroupMember`. Invariant: what it owns, the coordinator knows it to own, or has given it to it."""

    def __init__(self, settings: GroupSettings) -> None:
        self._settings = settings
        self.error: KafkaError | None = None
        self._member_id, self._epoch = str(uuid4()), JOINS
        self._topics: frozenset[str] | None = None  # None: it wants nothing yet
        self._assignment = NOTHING
        self._targets: Targets | None = None  # the assignment that came last, while there is something to do about it
        self._has_told = True  # the listener was told of it
        self._names: dict[UUID, str] = {}
        self._assigned_ids: frozenset[UUID] = frozenset()  # the topics of the assignment that came last
        self._has_looked_up = True  # since the assignment came
        self._is_lost = False
        self._told_topics: frozenset[str] | None = None
        self._told_owned: Owned | None = NOTHING
        self._backoff = Backoff(settings.retry_backoff)
        self._interval = settings.heartbeat_interval  # until the coordinator names its own
        self._heartbeat_at = self._lookup_at = -NEVER
        self._leave_at = NEVER

    @property
    def metadata(self) -> GroupMetadata:
        return GroupMetadata(self._settings.group_id, self._epoch, self._member_id, self._settings.group_instance_id)

    @property
    def assignment(self) -> Owned:
        return self._assignment

    @property
    def is_member(self) -> bool:
        return self._epoch > JOINS

    @property
    def is_settled(self) -> bool:
        return self._topics is None or (self._epoch > 0 and self._targets is None and not self._is_lost)

    def subscribe(self, topics: Collection[str]) -> None:
        self._topics = frozenset(topics)

    # -- the consumer's thread

    def polled(self, now: float) -> None:
        self._leave_at = now + self._settings.max_poll_interval

    def next_call(self) -> Call | None:
        if self._is_lost and self._assignment:
            return Call(Event.LOST, self._assignment)
        self._is_lost = False
        if self._targets is None:
            return None
        target = self._named(self._targets)
        if self._assignment - target:
            return Call(Event.REVOKED, self._assignment - target)
        if not self._has_looked_up:
            return None
        if target - self._assignment or not self._has_told:
            return Call(Event.ASSIGNED, target - self._assignment)
        if not self._nameless():
            self._targets = None
        return None

    def last_call(self) -> Call | None:
        event = Event.LOST if self._is_lost else Event.REVOKED
        return Call(event, self._assignment) if self._assignment else None

    def called(self, call: Call) -> None:
        if call.event is Event.ASSIGNED:
            self._assignment |= call.partitions
            self._has_told = True
        else:
            self._assignment -= call.partitions

    def commit_refused(self, code: ErrorCode, identity: GroupMetadata) -> None:
        if identity == self.metadata and code in FENCED:
            self._lose()

    def leave_request(self) -> Request | None:
        if self._epoch <= 0:
            return None
        static = self._settings.group_instance_id is not None
        return self._request(LEAVES_FOR_A_WHILE if static else LEAVES)

    # -- the membership's thread

    def next_request(self, now: float) -> Request | TopicLookup | None:
        if self.error is not None or self._topics is None or self._is_lost or now < self._backoff.retry_at:
            return None
        if self._epoch > 0 and now >= self._leave_at:
            return self._leave()
        if self._leave_at == NEVER:
            return None  # it has left, and waits for the consumer
        nameless = self._nameless()
        if nameless and now >= self._lookup_at:
            return TopicLookup(ids=nameless)
        return self._heartbeat() if self._has_news() or now >= self._heartbeat_at else None

    def deadline(self) -> float:
        if self.error is not None or self._topics is None or self._is_lost or self._leave_at == NEVER:
            return NEVER
        due = -NEVER if self._has_news() else min(self._heartbeat_at, self._leave_at)
        return max(min(due, self._lookup_at) if self._nameless() else due, self._backoff.retry_at)

    def patience(self, request: Request) -> float | None:
        return None

    def answered(self, request: Request | TopicLookup, response: Any, now: float) -> None:
        if isinstance(response, TopicFacts):
            self._names.update(response.names)
            self._has_looked_up = True
            self._lookup_at = now + self._interval
        elif isinstance(request, ConsumerGroupHeartbeatRequest) and request.member_epoch >= JOINS:
            self._heard(request, response, now)
        self._backoff.answered(now)

    def failed(self, now: float) -> None:
        """It may have arrived or not, so all is said again."""
        self._told_topics, self._told_owned = None, None
        self._backoff.failed(now)

    def refused(self, error: KafkaError) -> None:
        self.error = error
        self._targets, self._is_lost = None, True  # no more heartbeats

    # -- heartbeats

    def _has_news(self) -> bool:
        """Whether there is something to say before the next heartbeat is due."""
        return self._epoch == JOINS or self._topics != self._told_topics or self._may_tell_owned()

    def _may_tell_owned(self) -> bool:
        """Not while it reconciles; but a coordinator that may have missed something is told how it stands."""
        return self._told_owned != self._assignment and (self._targets is None or self._told_owned is None)

    def _heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        settings, request = self._settings, self._request(self._epoch)
        if self._epoch == JOINS or self._topics != self._told_topics:
            request.subscribed_topic_names = sorted(self._topics or ())
            request.rebalance_timeout_ms = int(settings.max_poll_interval * 1000)
            request.server_assignor = settings.remote_assignor
        if self._epoch == JOINS or self._may_tell_owned():
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
        warn_of_silence(self._settings)
        request = self.leave_request()
        self._lose()
        self._leave_at = NEVER
        return request

    def _heard(
        self, request: ConsumerGroupHeartbeatRequest, response: ConsumerGroupHeartbeatResponse, now: float
    ) -> None:
        code = response.error_code
        if code in TRY_AGAIN:
            self.failed(now)
        elif code in FENCED:
            self._lose()
        elif code:
            self.refused(group_error(self._settings, code, response.error_message))
        else:
            self._note(request, response, now)

    def _note(
        self, request: ConsumerGroupHeartbeatRequest, response: ConsumerGroupHeartbeatResponse, now: float
    ) -> None:
        if request.subscribed_topic_names is not None:
            self._told_topics = frozenset(request.subscribed_topic_names)
        if request.topic_partitions is not None:
            owned = {each.topic_id: each.partitions for each in request.topic_partitions}
            self._told_owned = self._named(owned)
        self._member_id = response.member_id or self._member_id
        self._epoch = response.member_epoch
        self._interval = response.heartbeat_interval_ms / 1000
        self._heartbeat_at = now + self._interval
        if response.assignment is not None:
            self._targets = {each.topic_id: each.partitions for each in response.assignment.topic_partitions}
            self._assigned_ids = frozenset(self._targets)
            self._has_told = False
            self._has_looked_up, self._lookup_at = not self._nameless(), now

    def _lose(self) -> None:
        """It joins again, once the listener has heard of it."""
        self._epoch, self._targets, self._is_lost = JOINS, None, True
        self._told_topics, self._told_owned = None, None

    # -- names

    def _nameless(self) -> frozenset[UUID]:
        return frozenset(self._targets or ()) - self._names.keys()

    def _named(self, targets: Targets) -> Owned:
        return frozenset(
            TopicPartition(self._names[topic_id], number)
            for topic_id, numbers in targets.items()
            if topic_id in self._names
            for number in numbers
        )

    def _by_id(self, owned: Owned) -> list[TopicPartitions]:
        topics: dict[UUID, list[int]] = {}
        # A topic that was deleted and made anew has two ids and one name: that one counts which is assigned.
        by_age = sorted(self._names, key=lambda topic_id: topic_id in self._assigned_ids)
        ids = {self._names[topic_id]: topic_id for topic_id in by_age}
        for name, number in sorted(owned):
            topics.setdefault(ids[name], []).append(number)
        return [TopicPartitions(topic_id=topic_id, partitions=numbers) for topic_id, numbers in topics.items()]
