"""Commits and fetches the offsets of a group: sends OffsetCommit and OffsetFetch requests to the group's coordinator.

A commit contains the consumer's member id and generation. With the consumer protocol (KIP-848), a commit contains the
member epoch instead of the generation. The coordinator refuses a commit with an old generation or epoch, because the
consumer may have lost its partitions.

A consumer that uses `assign` is not a member of the group, and commits without a member id. For this consumer, the
group id is only a name for a set of offsets. The coordinator accepts commits without a member id if the group has no
members.

`commit_async` sends a request, and does not wait for the response. A later call of `poll`, `commit` or `committed`
reads the response.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import NamedTuple, TypeVar

from hmb.client.backoff import Backoff
from hmb.client.connection import ConnectionFailed
from hmb.client.coordinator import MOVED, CoordinatorConnection
from hmb.client.errors import response_error
from hmb.client.group.errors import group_error
from hmb.client.group.interface import CommitCallback, GroupMetadata, MemberSettings, OffsetAndMetadata
from hmb.client.group.offset_messages import (
    NEWEST_BY_NAME,
    commit_codes,
    commit_request,
    fetch_request,
    fetched_offsets,
    for_version,
)
from hmb.client.metadata import Cluster
from hmb.client.retries import with_retries
from hmb.protocol.enums import CoordinatorType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest
from hmb.protocol.schema import Request
from hmb.protocol.topics import TopicPartition

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
Committed = dict[TopicPartition, OffsetAndMetadata | None]
T = TypeVar("T")

SHORTEST_ATTEMPT = 1.0  # seconds; in less time, a broker usually cannot answer
RECONNECT_FOR = 0.1  # seconds; then `commit_before_leaving` gives up
COMMIT_PARTITION_ERRORS = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    }
)
HAS_MEMBERS = "group {!r} has members, and only they may commit; use another group for partitions assigned by hand"
# STALE_MEMBER_EPOCH means that the commit contained an old epoch. The coordinator sends the new epoch in its next
# heartbeat response. A commit after this response can succeed.
TEMPORARY = frozenset({ErrorCode.STALE_MEMBER_EPOCH})


class CommitInFlight(NamedTuple):
    """A commit whose response has not been read yet."""

    offsets: Offsets
    identity: GroupMetadata
    callback: CommitCallback | None


class CommittedOffsets:
    """Commits and fetches the offsets of one group.

    Only the consumer's thread uses this object. The object has its own connection to the coordinator.

    For each commit, the object calls the function `identity`, which returns the consumer's current member id and
    generation. If the coordinator refuses the commit, the object calls the function `refused`.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: MemberSettings,
        identity: Callable[[], GroupMetadata],
        refused: Callable[[ErrorCode, GroupMetadata], None],
    ) -> None:
        self._settings = settings
        self._identity, self._refused = identity, refused
        self._coordinator = CoordinatorConnection(cluster, CoordinatorType.GROUP, settings.group_id)
        self._in_flight: deque[CommitInFlight] = deque()
        self._is_lost = False  # whether `commit_before_leaving` failed to reach the coordinator

    @property
    def metadata(self) -> GroupMetadata:
        return self._identity()

    def poll(self) -> None:
        """Read all responses that have arrived. For each response, call the callback of its commit."""
        with suppress(ConnectionFailed):  # `_connection_lost` has passed the error to the callbacks.
            while self._in_flight and self._coordinator.connection().has_response:
                self._receive_one()

    def commit(self, offsets: Offsets, timeout: float | None = None) -> None:
        """Commit offsets, and wait for the response.

        After a temporary error, the method retries for up to `timeout` seconds. With `timeout=None`, the limit is
        `request_timeout`.

        Raises KafkaError if the coordinator refuses the commit, and ConnectionFailed if the coordinator cannot be
        reached.
        """
        if offsets:
            self._until_done(partial(self._commit, offsets), timeout)

    def commit_before_leaving(self, offsets: Offsets, timeout: float | None = None) -> None:
        """Commit offsets as `commit` does. But if the connection is lost, retry for only 0.1 s.

        A consumer calls this method when it closes, because it must not wait long for a broker that has stopped. If the
        commit fails, the next owner of the partitions reads some records again.
        """
        try:
            attempt = partial(self._commit, offsets)
            self._until_done(attempt, timeout, reconnect_for=RECONNECT_FOR, shortest=0.0)
        except ConnectionFailed:
            self._is_lost = True
            raise

    def commit_async(self, offsets: Offsets, callback: CommitCallback | None = None) -> None:
        """Send a commit, without waiting for the response and without retries.

        A later call, for example of `poll` or `commit`, reads the response and calls `callback`. The arguments of
        `callback` are the offsets, and the error or None. If the commit cannot be sent, `commit_async` itself calls
        `callback`.
        """
        try:
            connection, identity = self._coordinator.connection(), self._identity()
            version = connection.version_of(OffsetCommitRequest, NEWEST_BY_NAME)
            connection.post(commit_request(identity, offsets), version)
        except (ConnectionFailed, KafkaError) as error:
            self._connection_lost(error)
            if callback is not None:
                callback(offsets, error)
        else:
            self._in_flight.append(CommitInFlight(offsets, identity, callback))

    def committed(self, partitions: Iterable[TopicPartition], timeout: float | None = None) -> Committed:
        """Return each partition's committed offset, or None if the group has committed no offset for the partition.

        The method retries like `commit`.
        """
        wanted = list(partitions)
        return self._until_done(partial(self._fetch, wanted), timeout) if wanted else {}

    def send_leave_request(self, request: Request, timeout: float) -> None:
        """Send the request with which the member leaves the group.

        If the last commit (`commit_before_leaving`) could not reach the coordinator, the method sends nothing.
        Otherwise, it first waits for the responses to all commits in flight.
        """
        if self._is_lost:
            return
        self._receive_all(timeout)
        self._coordinator.send(type(request), partial(for_version, request), timeout=timeout)

    def close(self, timeout: float | None = None) -> None:
        """Wait for the responses to the commits in flight, and close the connection.

        The method waits at most `timeout` seconds for each response. With `timeout=None`, the limit is
        `request_timeout`.
        """
        with suppress(ConnectionFailed):
            self._receive_all(timeout)
        self._coordinator.forget()

    def _until_done(
        self,
        attempt: Callable[[float], T],
        timeout: float | None = None,
        *,
        reconnect_for: float = math.inf,
        shortest: float = SHORTEST_ATTEMPT,
    ) -> T:
        """Call `attempt`, and return its result. After a temporary error, call `attempt` again.

        The retries end after `timeout` seconds. If `timeout` is None, they end after `request_timeout` seconds. If
        the connection is lost, they can end earlier: after `reconnect_for` seconds.

        The argument of `attempt` is the number of seconds that the call may take. For example, if `timeout` is 30
        and 20 s have passed, the argument is 10. If less than `shortest` seconds are left, the argument is
        `shortest`.
        """
        limit = self._settings.request_timeout if timeout is None else timeout
        deadline = time.monotonic() + limit
        backoff = Backoff(self._settings.retry_backoff)

        def try_once() -> T:
            try:
                return attempt(max(shortest, deadline - time.monotonic()))
            except (ConnectionFailed, KafkaError) as error:
                self._connection_lost(error)
                raise

        def wait(error: ConnectionFailed | KafkaError) -> bool:
            now = time.monotonic()
            backoff.failed(now)
            if backoff.retry_at >= deadline:
                return True
            time.sleep(backoff.retry_at - now)
            return False

        def retry_for(error: ConnectionFailed | KafkaError) -> float:
            if isinstance(error, ConnectionFailed):
                return min(limit, reconnect_for)
            return limit if _is_temporary(error) else 0.0

        return with_retries(try_once, retry_for, wait)

    def _connection_lost(self, error: ConnectionFailed | KafkaError) -> None:
        """Close the connection if `error` shows that another broker may be the coordinator now.

        For example, the connection was lost, or the broker answered NOT_COORDINATOR. In these cases all commits in
        flight fail: the method calls their callbacks with `error`. The next request looks up the coordinator again.
        After any other error, the method does nothing.
        """
        if isinstance(error, KafkaError) and error.code not in MOVED:
            return
        self._coordinator.forget()
        in_flight, self._in_flight = self._in_flight, deque()
        for commit in in_flight:
            if commit.callback is not None:
                commit.callback(commit.offsets, error)

    # -- OffsetCommit

    def _commit(self, offsets: Offsets, timeout: float) -> None:
        self._receive_all(timeout)
        connection, identity = self._coordinator.connection(), self._identity()
        version = connection.version_of(OffsetCommitRequest, NEWEST_BY_NAME)
        self._check(connection.send(commit_request(identity, offsets), version, timeout), identity)

    def _receive_all(self, timeout: float | None = None) -> None:
        while self._in_flight:
            self._receive_one(timeout)

    def _receive_one(self, timeout: float | None = None) -> None:
        """Wait for the response to the oldest commit in flight, and call the callback of this commit."""
        try:
            response = self._coordinator.connection().receive(timeout)
        except ConnectionFailed as error:
            self._connection_lost(error)
            raise
        except BaseException:  # After Ctrl-C, close the connection: it can still contain a part of the response.
            self._coordinator.connection().close()
            raise
        offsets, identity, callback = self._in_flight.popleft()
        failure = None
        try:
            self._check(response, identity)
        except KafkaError as error:
            failure = error
            self._connection_lost(error)
        if callback is not None:
            callback(offsets, failure)

    def _check(self, response: OffsetCommitResponse, identity: GroupMetadata) -> None:
        """If the response contains an error, raise an exception for the first error."""
        for partition, code in commit_codes(response):
            if code:
                error = self._error(partition, code)
                if code == ErrorCode.UNKNOWN_MEMBER_ID and not identity.member_id:
                    error = KafkaError(error.code, HAS_MEMBERS.format(identity.group_id))
                self._refused(error.code, identity)
                raise error

    # -- OffsetFetch

    def _fetch(self, partitions: list[TopicPartition], timeout: float) -> Committed:
        self._receive_all(timeout)
        connection = self._coordinator.connection()
        version = connection.version_of(OffsetFetchRequest, NEWEST_BY_NAME)
        stable = self._settings.require_stable
        request = fetch_request(self._settings.group_id, partitions, version, require_stable=stable)
        found = fetched_offsets(connection.send(request, version, timeout), version)
        if found.error_code:
            raise group_error(self._settings, found.error_code)
        for partition, code in found.errors.items():
            raise self._error(partition, code)
        return {partition: found.committed.get(partition) for partition in partitions}

    def _error(self, where: TopicPartition, code: int) -> KafkaError:
        return response_error(where, code) if code in COMMIT_PARTITION_ERRORS else group_error(self._settings, code)


def _is_temporary(error: KafkaError) -> bool:
    return error.code in TEMPORARY or (error.code.retriable and error.code not in COMMIT_PARTITION_ERRORS)
