"""A consumer's membership in a group: a `GroupMember`, and the two threads that call its methods.

A member must send heartbeats regularly, because otherwise the coordinator removes it from the group. But an
application may need a minute to process its records. During this minute, the consumer's thread cannot send heartbeats.
A second thread, the membership thread, therefore sends them. The two threads have these tasks:
    consumer's thread     calls the rebalance listener during a poll, and commits offsets
    membership thread     sends heartbeats, and the requests that wait for other members (JoinGroup, SyncGroup)

Because of the membership thread, a consumer that processes records slowly remains a member of the group. But if
the consumer does not poll for `max_poll_interval` seconds, the member leaves the group.

Only the membership thread waits for the response to JoinGroup. The consumer's thread does not, so `poll` can
return at its timeout.

The two threads of a consumer use the same `GroupMember`, and a lock protects this object. A thread releases the
lock before it waits for a broker or calls code of the application.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from typing import Any

from hmb.client.connection import ConnectionFailed
from hmb.client.coordinator import LEAVE_TIMEOUT, MOVED, CoordinatorConnection
from hmb.client.group.classic_member import ClassicGroupMember
from hmb.client.group.commits import CommittedOffsets
from hmb.client.group.consumer_member import ConsumerGroupMember
from hmb.client.group.errors import group_error
from hmb.client.group.interface import GroupMetadata, MemberSettings, RebalanceListener
from hmb.client.group.member import GroupMember, ListenerCall, TopicLookup, TopicLookupResult
from hmb.client.group.offset_messages import for_version
from hmb.client.metadata import Cluster
from hmb.defaults import LONGEST_WAIT
from hmb.protocol.enums import CoordinatorType, GroupType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from hmb.protocol.messages.join_group import JoinGroupRequest
from hmb.protocol.schema import Request
from hmb.protocol.topics import TopicPartition


def join_group(cluster: Cluster, settings: MemberSettings, listener: RebalanceListener) -> GroupMembership:
    """Create a consumer's membership in a group, for the classic or the consumer protocol (`group_protocol`).

    This function does not yet send a request. The consumer joins the group at its first poll after `subscribe`.
    """
    is_classic = settings.group_protocol == GroupType.CLASSIC
    member = ClassicGroupMember(settings) if is_classic else ConsumerGroupMember(settings)
    return GroupMembership(cluster, settings, listener, member)


def group_offsets(cluster: Cluster, settings: MemberSettings) -> CommittedOffsets:
    """Return the `CommittedOffsets` of a group, for a consumer that is not a member of the group.

    Such a consumer has chosen its partitions with `assign`, and still commits offsets for the group.
    """
    return CommittedOffsets(cluster, settings, lambda: GroupMetadata(settings.group_id), lambda code, identity: None)


class GroupMembership:
    """A consumer's membership in its group. Only the consumer's thread may call the public methods.

    The consumer commits offsets through the attribute `offsets`. Each commit contains the member id of this member,
    and its generation. In the consumer protocol (KIP-848), the member epoch replaces the generation. While the
    consumer is not a member of the group, a commit raises KafkaError with UNKNOWN_MEMBER_ID.
    """

    def __init__(
        self, cluster: Cluster, settings: MemberSettings, listener: RebalanceListener, member: GroupMember
    ) -> None:
        self._cluster, self._settings, self._listener = cluster, settings, listener
        # A thread must hold this condition's lock to change `_member` or `_is_closing`. A thread that holds this lock
        # must not take another lock of HMB.
        self._changed = threading.Condition()
        self._member = member
        self._is_closing = False
        self._is_calling = False  # whether a call of the rebalance listener is in progress
        # Only the membership thread sends requests on this connection, because a request here can wait for minutes.
        # Commits use another connection.
        self._coordinator = CoordinatorConnection(cluster, CoordinatorType.GROUP, settings.group_id)
        self.offsets = CommittedOffsets(cluster, settings, self._committing_member, self._commit_refused)
        self._thread: threading.Thread | None = None

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this member owns. They change only during `poll`."""
        with self._changed:
            return self._member.assignment

    @property
    def metadata(self) -> GroupMetadata:
        """The member's identity. Before the member has joined, the generation in this identity is -1."""
        with self._changed:
            return self._member.metadata

    def subscribe(self, topics: Collection[str]) -> None:
        """Replace the topics that the consumer subscribes to. The next `poll` joins the group with the new topics.

        A consumer with a pattern calls this method whenever the set of matching topics changes.
        """
        with self._changed:
            self._member.subscribe(topics)
            self._changed.notify_all()
        if self._thread is None:
            name = f"hmb-group-{self._settings.group_id}"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    # -- the consumer's thread

    def poll(self, timeout: float) -> None:
        """Take part in a rebalance. If no rebalance is in progress, return immediately.

        The consumer calls this method before each fetch. During a rebalance, the method calls the rebalance listener,
        and waits up to `timeout` seconds for the other members of the group. If a request fails with a temporary error,
        the membership thread sends the request again in the background.

        Raises KafkaError after a fatal error, for example if the broker refuses the group id. If the rebalance listener
        raises exceptions, the method raises the first of them at the end of the call.
        """
        if self._is_calling:
            return  # The rebalance listener itself has called the consumer's `poll`.
        deadline = time.monotonic() + timeout
        self.offsets.poll()
        with self._changed:
            self._member.polled(time.monotonic())
        first_error: Exception | None = None
        while (call := self._next_call(deadline)) is not None:
            try:
                self._call_listener(call)
            except Exception as error:  # noqa: BLE001 - an error of the application, raised after the rebalance
                first_error = first_error or error
                # The rebalance listener has raised an error, and `poll` must pass it to the application soon. With this
                # deadline, `_next_call` does not wait: it returns only a call that is possible now.
                deadline = time.monotonic()
        if first_error is not None:
            raise first_error
        if self._member.error is not None:
            raise self._member.error

    def close(self, timeout: float | None = None) -> None:
        """Call the rebalance listener, give up all partitions, and stop the member.

        A member that is not static leaves the group. A static member may start again soon, so it stays in the group
        until its session expires (KIP-345).
        """
        leave_timeout = LEAVE_TIMEOUT if timeout is None else min(timeout, LEAVE_TIMEOUT)
        try:
            with self._changed:
                call = self._member.last_call()
            if call is not None:
                self._call_listener(call)
        finally:
            self._stop_thread(leave_timeout)
            self._leave(leave_timeout)
            self.offsets.close(timeout)

    def _next_call(self, deadline: float) -> ListenerCall | None:
        """Return the next call of the rebalance listener, or None if there is no call to make.

        During a rebalance, the method waits for a call, the end of the rebalance, a fatal error or `deadline`.
        """
        with self._changed:
            while True:
                call = self._member.next_call()
                now = time.monotonic()
                # Wake the membership thread, but only if it must send a request now.
                if self._member.deadline() <= now:
                    self._changed.notify_all()
                if call is not None or self._member.is_stable or self._member.error is not None or now >= deadline:
                    return call
                self._changed.wait(min(deadline - now, LONGEST_WAIT))

    def _call_listener(self, call: ListenerCall) -> None:
        self._is_calling = True
        try:
            getattr(self._listener, call.method.value)(call.partitions)
        finally:
            self._is_calling = False
            with self._changed:
                self._member.call_finished(call)
                self._changed.notify_all()

    def _stop_thread(self, timeout: float) -> None:
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._coordinator.interrupt()  # The thread may be waiting for a response, even for minutes.
            self._thread.join(timeout)

    def _leave(self, timeout: float) -> None:
        request = self._member.leave_request()
        if request is not None:
            with suppress(ConnectionFailed, KafkaError):  # If the request fails, the session expires later.
                self.offsets.send_leave_request(request, timeout)

    def _committing_member(self) -> GroupMetadata:
        """Return the member id and the generation that a commit must contain.

        Raises KafkaError with UNKNOWN_MEMBER_ID if the consumer is not a member of the group. Without this check, an
        empty group could accept the commit: it accepts commits from clients that are not members.
        """
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
                self._exchange(request)
        finally:
            with self._changed:
                if not self._is_closing:
                    what = f"group {self._settings.group_id!r}: the thread of its heartbeats has failed"
                    self._member.fail(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, what))
                self._changed.notify_all()
            self._coordinator.forget()

    def _next_request(self) -> Request | TopicLookup | None:
        """Wait until the member has a request to send, and return it. Return None when the consumer is closed."""
        with self._changed:
            while not self._is_closing:
                now = time.monotonic()
                request = self._member.next_request(now)
                if request is not None:
                    return request
                self._changed.wait(max(0.0, min(self._member.deadline() - now, LONGEST_WAIT)))
        return None

    def _exchange(self, request: Request | TopicLookup) -> None:
        """Send one request, and pass the response or the error to the group member."""
        try:
            response = self._send(request)
        except ConnectionFailed:
            with self._changed:
                self._member.request_failed(time.monotonic())
        except KafkaError as error:
            with self._changed:
                if error.code.retriable:
                    self._member.request_failed(time.monotonic())
                else:
                    self._member.fail(_explained(error, request))
                self._changed.notify_all()
        else:
            with self._changed:
                self._member.response_received(request, response, time.monotonic())
                self._changed.notify_all()

    def _send(self, request: Request | TopicLookup) -> Any:
        if isinstance(request, TopicLookup):
            return _look_up(self._cluster, request)
        timeout = self._member.response_timeout(request)
        response = self._coordinator.send(type(request), partial(for_version, request), timeout=timeout)
        if response.error_code in MOVED:
            self._coordinator.forget()
        return response


def _look_up(cluster: Cluster, lookup: TopicLookup) -> TopicLookupResult:
    for name in lookup.names:
        cluster.forget(name)  # Forget all names first: one metadata request then refreshes all these topics.
    counts = {}
    for name in lookup.names:
        with suppress(KafkaError):  # The topic does not exist yet, or was deleted.
            counts[name] = len(cluster.topic(name).leaders)
    names = {topic_id: cluster.topic_name(topic_id) for topic_id in lookup.ids}
    return TopicLookupResult(counts, {topic_id: name for topic_id, name in names.items() if name is not None})


def _explained(error: KafkaError, request: Request | TopicLookup) -> KafkaError:
    """Return the error. If the broker does not support the request, the error message ends with advice."""
    if error.code is not ErrorCode.UNSUPPORTED_VERSION:
        return error
    advice = "members of groups need Kafka 0.9: assign() partitions by hand"
    if isinstance(request, ConsumerGroupHeartbeatRequest):
        advice = 'use group_protocol="classic"'
    elif isinstance(request, JoinGroupRequest) and request.group_instance_id is not None:
        advice = "static members (group_instance_id) need Kafka 2.3"
    return KafkaError(error.code, f"{error.message}; {advice}")
