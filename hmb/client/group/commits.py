"""A group's committed offsets: OffsetCommit and OffsetFetch at the group's coordinator.

A commit contains the member's id and its generation (in KIP-848's groups: its epoch). The coordinator can therefore
refuse a commit of a member that has lost its partitions since. A consumer that chose its partitions with `assign` has
no member id. The group is then only a name for a set of offsets, and the coordinator accepts a commit from anybody as
long as the group has no members.

`commit_async` sends a request and does not wait. The response stays in the connection until the next call reads it.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import NamedTuple, TypeVar

from hmb.client.connection import ConnectionFailed
from hmb.client.coordinator import MOVED, CoordinatorConnection
from hmb.client.errors import answered_error
from hmb.client.group.errors import group_error
from hmb.client.group.interface import CommitCallback, GroupMetadata, MemberSettings, OffsetAndMetadata
from hmb.client.group.member import Backoff
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

SHORTEST_ATTEMPT = 1.0  # seconds; the last attempt lasts this long, so that its error shows the true reason
RECONNECT_FOR = 0.1  # seconds; a consumer that is closed does not wait for a broker that is gone
PARTITION_ERRORS = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    }
)
HAS_MEMBERS = "group {!r} has members, and only they may commit; use another group for partitions assigned by hand"
# STALE_MEMBER_EPOCH means that the member has an old epoch. The response to its next heartbeat contains the new one, so
# a later commit succeeds.
TEMPORARY = frozenset({ErrorCode.STALE_MEMBER_EPOCH})


class _PendingCommit(NamedTuple):
    """A commit that has been sent, but not answered yet."""

    offsets: Offsets
    identity: GroupMetadata
    callback: CommitCallback | None


class CommittedOffsets:
    """The committed offsets of one group. It belongs to the consumer's thread, and has a connection of its own.

    `identity` returns the identity for the next commit. `refused` is called for each commit that the coordinator
    refuses.
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
        self._pending: deque[_PendingCommit] = deque()
        self._is_lost = False  # whether the last commit before leaving has found no coordinator

    @property
    def metadata(self) -> GroupMetadata:
        return self._identity()

    def poll(self) -> None:
        """Read the responses that have arrived, and call their callbacks. The method does not wait."""
        with suppress(ConnectionFailed):  # The callbacks have received the error.
            while self._pending and self._coordinator.connection().is_answered:
                self._receive_one()

    def commit(self, offsets: Offsets, timeout: float | None = None) -> None:
        """Commit, and wait for the response. Retry temporary errors for `timeout` or `request_timeout` seconds.

        Raises KafkaError if the coordinator refuses the commit, and ConnectionFailed if it cannot be reached.
        """
        if offsets:
            self._until_done(partial(self._commit, offsets), timeout)

    def commit_before_leaving(self, offsets: Offsets, timeout: float | None = None) -> None:
        """Commit as `commit` does, but retry a lost connection for only 0.1 s.

        A consumer that is closed must not wait for a broker that is gone. The next consumer reads some records again.
        """
        try:
            attempt = partial(self._commit, offsets)
            self._until_done(attempt, timeout, reconnect_for=RECONNECT_FOR, shortest=0.0)
        except ConnectionFailed:
            self._is_lost = True
            raise

    def commit_async(self, offsets: Offsets, callback: CommitCallback | None = None) -> None:
        """Send a commit once, without waiting. A later `poll` or `commit` calls `callback` with the error or None."""
        try:
            connection, identity = self._coordinator.connection(), self._identity()
            version = connection.version_of(OffsetCommitRequest, NEWEST_BY_NAME)
            connection.post(commit_request(identity, offsets), version)
        except (ConnectionFailed, KafkaError) as error:
            self._connection_lost(error)
            if callback is not None:
                callback(offsets, error)
        else:
            self._pending.append(_PendingCommit(offsets, identity, callback))

    def committed(self, partitions: Iterable[TopicPartition], timeout: float | None = None) -> Committed:
        """Return the committed offset of each partition, or None. Retry as `commit` does."""
        wanted = list(partitions)
        return self._until_done(partial(self._fetch, wanted), timeout) if wanted else {}

    def send_leave_request(self, request: Request, timeout: float) -> None:
        """Send the member's LeaveGroup or last heartbeat, after all pending commits.

        If the last commit has found no coordinator, nothing is sent, because a second attempt would only take time.
        """
        if self._is_lost:
            return
        self._receive_all(timeout)
        self._coordinator.send(type(request), partial(for_version, request), timeout=timeout)

    def close(self, timeout: float | None = None) -> None:
        """Wait for pending commits, each for `timeout` or `request_timeout` seconds, and close the connection."""
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
        """Retry while errors are temporary, for `timeout` or `request_timeout` seconds.

        `attempt` is called with the remaining seconds, at least `shortest`. Lost connections are retried for at most
        `reconnect_for` seconds.
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
        """Close the connection if it was lost or the coordinator has moved.

        Call the callbacks of pending commits with the error.

        The next request finds the coordinator again.
        """
        if isinstance(error, KafkaError) and error.code not in MOVED:
            return
        self._coordinator.forget()
        pending, self._pending = self._pending, deque()
        for commit in pending:
            if commit.callback is not None:
                commit.callback(commit.offsets, error)

    # -- OffsetCommit

    def _commit(self, offsets: Offsets, timeout: float) -> None:
        self._receive_all(timeout)
        connection, identity = self._coordinator.connection(), self._identity()
        version = connection.version_of(OffsetCommitRequest, NEWEST_BY_NAME)
        self._check(connection.send(commit_request(identity, offsets), version, timeout), identity)

    def _receive_all(self, timeout: float | None = None) -> None:
        while self._pending:
            self._receive_one(timeout)

    def _receive_one(self, timeout: float | None = None) -> None:
        """Read the response to the oldest pending commit, and call its callback."""
        try:
            response = self._coordinator.connection().receive(timeout)
        except ConnectionFailed as error:
            self._connection_lost(error)
            raise
        except BaseException:  # After Ctrl-C, a later request must not receive the rest of this response.
            self._coordinator.connection().close()
            raise
        offsets, identity, callback = self._pending.popleft()
        failure = None
        try:
            self._check(response, identity)
        except KafkaError as error:
            failure = error
            self._connection_lost(error)
        if callback is not None:
            callback(offsets, failure)

    def _check(self, response: OffsetCommitResponse, identity: GroupMetadata) -> None:
        """Raise the first error in the response."""
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
        return answered_error(where, code) if code in PARTITION_ERRORS else group_error(self._settings, code)


def _is_temporary(error: KafkaError) -> bool:
    return error.code in TEMPORARY or (error.code.retriable and error.code not in PARTITION_ERRORS)
