"""A consumer's place in its group: a `GroupMember`, and the two threads that drive it.

The consumer's thread comes by in `poll`, and calls the listener. The membership's own sends what is to be sent, and
waits for the answers: heartbeats, and the requests that wait for all other members. So a consumer that works on its
records for long stays a member, and one that polls with a short timeout gets it back in time. The two meet in the
member's state, under one lock; neither holds it while it waits for a broker or calls the program.
"""

import threading
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from hmb.client.connection import ConnectionFailed
from hmb.client.coordinator import MOVED, CoordinatorConnection
from hmb.client.group.classic_member import ClassicMember
from hmb.client.group.commits import CommittedOffsets
from hmb.client.group.consumer_member import ConsumerMember
from hmb.client.group.errors import group_error
from hmb.client.group.interface import (
    CommitCallback,
    GroupMetadata,
    GroupOffsets,
    GroupSettings,
    Membership,
    OffsetAndMetadata,
    RebalanceListener,
)
from hmb.client.group.member import Call, GroupMember, TopicFacts, TopicLookup
from hmb.client.group.offset_messages import for_version
from hmb.client.metadata import Cluster
from hmb.protocol.enums import CoordinatorType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from hmb.protocol.messages.join_group import JoinGroupRequest
from hmb.protocol.schema import Request
from hmb.protocol.topics import TopicPartition

LONGEST_WAIT = 60.0  # seconds; then one looks again, though nothing is to be expected
GOODBYE = 5.0  # seconds at most for the last words to a coordinator


def join_group(cluster: Cluster, settings: GroupSettings, listener: RebalanceListener) -> Membership:
    """A membership in the protocol of the settings; it joins at the first `poll` after `subscribe`."""
    make: dict[str, type[ClassicMember] | type[ConsumerMember]] = {"classic": ClassicMember, "consumer": ConsumerMember}
    return GroupMembership(cluster, settings, listener, make[settings.group_protocol](settings))


def group_offsets(cluster: Cluster, settings: GroupSettings) -> GroupOffsets:
    """The offsets of a group, for who is no member of it."""
    return CommittedOffsets(cluster, settings, lambda: GroupMetadata(settings.group_id), lambda code, identity: None)


class GroupMembership:
    """`Membership`; see there."""

    def __init__(
        self, cluster: Cluster, settings: GroupSettings, listener: RebalanceListener, member: GroupMember
    ) -> None:
        self._cluster, self._settings, self._listener = cluster, settings, listener
        # Guards the member and `_is_closing`, and is notified of every change; no other lock is taken under it.
        self._changed = threading.Condition()
        self._member = member
        self._is_closing = False
        self._is_telling = False  # the listener is at work, whatever it calls
        # Only the membership's thread uses this connection.
        self._coordinator = CoordinatorConnection(cluster, CoordinatorType.GROUP, settings.group_id)
        self._offsets = CommittedOffsets(cluster, settings, self._committer, self._commit_refused)
        self._thread: threading.Thread | None = None

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        with self._changed:
            return self._member.assignment

    @property
    def metadata(self) -> GroupMetadata:
        with self._changed:
            return self._member.metadata

    def subscribe(self, topics: Collection[str]) -> None:
        with self._changed:
            self._member.subscribe(topics)
            self._changed.notify_all()
        if self._thread is None:
            name = f"hmb-group-{self._settings.group_id}"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout: float | None = None) -> None:
        self._offsets.commit(offsets, timeout)

    def commit_async(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], callback: CommitCallback | None = None
    ) -> None:
        self._offsets.commit_async(offsets, callback)

    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        return self._offsets.committed(partitions, timeout)

    # -- the consumer's thread

    def poll(self, timeout: float) -> None:
        if self._is_telling:
            return  # a callback that polls reads on with what there is
        deadline = time.monotonic() + timeout
        self._offsets.poll()
        with self._changed:
            self._member.polled(time.monotonic())
        first_error: Exception | None = None
        while (call := self._next_call(deadline)) is not None:
            try:
                self._tell(call)
            except Exception as error:  # noqa: BLE001 - it is the program's, and is raised when the rebalance is over
                first_error = first_error or error
                deadline = time.monotonic()  # it waits for nobody any more
        if first_error is not None:
            raise first_error
        if self._member.error is not None:
            raise self._member.error

    def close(self, timeout: float | None = None) -> None:
        goodbye = GOODBYE if timeout is None else min(timeout, GOODBYE)
        try:
            with self._changed:
                call = self._member.last_call()
            if call is not None:
                self._tell(call)
        finally:
            self._stop(goodbye)
            self._say_goodbye(goodbye)
            self._offsets.close(timeout)

    def _next_call(self, deadline: float) -> Call | None:
        """Wait for it until the deadline, but only while the group is busy."""
        with self._changed:
            while True:
                call = self._member.next_call()
                now = time.monotonic()
                if self._member.deadline() <= now:
                    self._changed.notify_all()  # not always: each poll would wake the other thread for nothing
                if call is not None or self._member.is_settled or self._member.error is not None or now >= deadline:
                    return call
                self._changed.wait(min(deadline - now, LONGEST_WAIT))

    def _tell(self, call: Call) -> None:
        self._is_telling = True
        try:
            getattr(self._listener, call.event.value)(call.partitions)
        finally:
            self._is_telling = False
            with self._changed:
                self._member.called(call)
                self._changed.notify_all()

    def _stop(self, timeout: float) -> None:
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._coordinator.interrupt()  # a JoinGroup may wait for minutes
            self._thread.join(timeout)

    def _say_goodbye(self, timeout: float) -> None:
        request = self._member.leave_request()
        if request is not None:
            with suppress(ConnectionFailed, KafkaError):  # its session will end anyhow
                self._offsets.say(request, timeout)

    def _committer(self) -> GroupMetadata:
        """KafkaError for who is no member: what it says might be taken for a commit by hand, if the group is empty."""
        with self._changed:
            if not self._member.is_member:
                raise group_error(self._settings, ErrorCode.UNKNOWN_MEMBER_ID)
            return self._member.metadata

    def _commit_refused(self, code: ErrorCode, identity: GroupMetadata) -> None:
        with self._changed:
            self._member.commit_refused(code, identity)

    # -- the membership's thread

    def _run(self) -> None:
        try:
            while (request := self._next_request()) is not None:
                self._step(request)
        finally:
            with self._changed:
                if not self._is_closing:
                    what = f"group {self._settings.group_id!r}: the thread of its heartbeats has failed"
                    self._member.refused(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, what))
                self._changed.notify_all()
            self._coordinator.forget()

    def _next_request(self) -> Request | TopicLookup | None:
        """Wait for it; None when the consumer is closed."""
        with self._changed:
            while not self._is_closing:
                now = time.monotonic()
                request = self._member.next_request(now)
                if request is not None:
                    return request
                self._changed.wait(max(0.0, min(self._member.deadline() - now, LONGEST_WAIT)))
        return None

    def _step(self, request: Request | TopicLookup) -> None:
        try:
            response = self._ask(request)
        except ConnectionFailed:
            with self._changed:
                self._member.failed(time.monotonic())
        except KafkaError as error:
            with self._changed:
                if error.code.retriable:
                    self._member.failed(time.monotonic())
                else:
                    self._member.refused(_explained(error, request))
                self._changed.notify_all()
        else:
            with self._changed:
                self._member.answered(request, response, time.monotonic())
                self._changed.notify_all()

    def _ask(self, request: Request | TopicLookup) -> Any:
        if isinstance(request, TopicLookup):
            return _look_up(self._cluster, request)
        response = self._coordinator.send(
            type(request), partial(for_version, request), timeout=self._member.patience(request)
        )
        if response.error_code in MOVED:
            self._coordinator.forget()
        return response


def _look_up(cluster: Cluster, lookup: TopicLookup) -> TopicFacts:
    for name in lookup.names:
        cluster.forget(name)  # all of them, so that the first question asks about all
    counts = {}
    for name in lookup.names:
        with suppress(KafkaError):  # there is none, or not yet
            counts[name] = len(cluster.topic(name).leaders)
    names = {topic_id: cluster.topic_name(topic_id) for topic_id in lookup.ids}
    return TopicFacts(counts, {topic_id: name for topic_id, name in names.items() if name is not None})


def _explained(error: KafkaError, request: Request | TopicLookup) -> KafkaError:
    """What to do with a broker that is too old for a request."""
    if error.code is not ErrorCode.UNSUPPORTED_VERSION:
        return error
    advice = "members of groups need Kafka 0.9: assign() partitions by hand"
    if isinstance(request, ConsumerGroupHeartbeatRequest):
        advice = 'use group_protocol="classic"'
    elif isinstance(request, JoinGroupRequest) and request.group_instance_id is not None:
        advice = "static members (group_instance_id) need Kafka 2.3"
    return KafkaError(error.code, f"{error.message}; {advice}")
