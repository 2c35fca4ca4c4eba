"""Committing a group's offsets, and asking for them.

A commit says who makes it: the member and its generation (its epoch, in KIP-848's groups), so that the coordinator can
refuse one that has lost its partitions meanwhile. Partitions that were assigned by hand have no member behind them: the
group is a mere name then, and anybody may commit as long as it has no members.

`commit_async` sends a commit and leaves the answer on the connection; it is read when one looks there the next time.
"""

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
from hmb.client.group.interface import CommitCallback, GroupMetadata, GroupSettings, OffsetAndMetadata
from hmb.client.group.member import Backoff
from hmb.client.group.offset_messages import (
    NEWEST_BY_NAME,
    commit_codes,
    commit_request,
    fetch_request,
    fetched,
    for_version,
)
from hmb.client.metadata import Cluster
from hmb.protocol.enums import CoordinatorType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest
from hmb.protocol.schema import Request
from hmb.protocol.topics import TopicPartition

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
Committed = dict[TopicPartition, OffsetAndMetadata | None]
T = TypeVar("T")

SHORTEST_TRY = 1.0  # seconds for an answer, though the time is nearly up: better a true reason than "too late"
OF_A_PARTITION = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    }
)
OF_MEMBERS = "group {!r} has members, who alone may commit; use another group for partitions assigned by hand"
MAY_PASS = frozenset({ErrorCode.STALE_MEMBER_EPOCH})  # once the next heartbeat has brought the new epoch


class _Sent(NamedTuple):
    """A commit without an answer so far."""

    offsets: Offsets
    identity: GroupMetadata
    callback: CommitCallback | None


class CommittedOffsets:
    """`GroupOffsets`: belongs to the consumer's thread, with a connection of its own."""

    def __init__(
        self,
        cluster: Cluster,
        settings: GroupSettings,
        identity: Callable[[], GroupMetadata],
        refused: Callable[[ErrorCode, GroupMetadata], None],
    ) -> None:
        self._settings = settings
        self._identity, self._refused = identity, refused  # who commits; whom to tell when that is not accepted
        self._coordinator = CoordinatorConnection(cluster, CoordinatorType.GROUP, settings.group_id)
        self._sent: deque[_Sent] = deque()

    @property
    def metadata(self) -> GroupMetadata:
        return self._identity()

    def poll(self, timeout: float = 0.0) -> None:
        with suppress(ConnectionFailed):  # those who waited have been told
            while self._sent and self._coordinator.connection().is_answered:
                self._settle_one()

    def commit(self, offsets: Offsets, timeout: float | None = None) -> None:
        if offsets:
            self._until_done(lambda left: self._commit(offsets, left), timeout)

    def commit_async(self, offsets: Offsets, callback: CommitCallback | None = None) -> None:
        try:
            connection, identity = self._coordinator.connection(), self._identity()
            version = connection.version_of(OffsetCommitRequest, NEWEST_BY_NAME)
            connection.post(commit_request(identity, offsets), version)
        except (ConnectionFailed, KafkaError) as error:
            self._connection_lost(error)
            if callback is not None:
                callback(offsets, error)
        else:
            self._sent.append(_Sent(offsets, identity, callback))

    def committed(self, partitions: Iterable[TopicPartition], timeout: float | None = None) -> Committed:
        wanted = list(partitions)
        return self._until_done(lambda left: self._fetch(wanted, left), timeout) if wanted else {}

    def say(self, request: Request, timeout: float) -> None:
        """The member's last word, over the same connection."""
        self._settle_all(timeout)
        self._coordinator.send(type(request), partial(for_version, request), timeout=timeout)

    def close(self, timeout: float | None = None) -> None:
        with suppress(ConnectionFailed):
            self._settle_all(timeout)
        self._coordinator.forget()

    def _until_done(self, attempt: Callable[[float], T], timeout: float | None = None) -> T:
        """Try again while time may help, for `timeout` or `request_timeout`; an attempt is told what is left of it."""
        deadline = time.monotonic() + (self._settings.request_timeout if timeout is None else timeout)
        backoff = Backoff(self._settings.retry_backoff)
        while True:
            try:
                return attempt(max(SHORTEST_TRY, deadline - time.monotonic()))
            except (ConnectionFailed, KafkaError) as error:
                self._connection_lost(error)
                now = time.monotonic()
                backoff.failed(now)
                if not _may_pass(error) or backoff.retry_at >= deadline:
                    raise
                time.sleep(backoff.retry_at - now)

    def _connection_lost(self, error: ConnectionFailed | KafkaError) -> None:
        """If it is: those who wait for an answer are told, and the coordinator is looked for anew."""
        if isinstance(error, KafkaError) and error.code not in MOVED:
            return
        self._coordinator.forget()
        waiting, self._sent = self._sent, deque()
        for sent in waiting:
            if sent.callback is not None:
                sent.callback(sent.offsets, error)

    # -- OffsetCommit

    def _commit(self, offsets: Offsets, timeout: float) -> None:
        self._settle_all(timeout)
        connection, identity = self._coordinator.connection(), self._identity()
        version = connection.version_of(OffsetCommitRequest, NEWEST_BY_NAME)
        self._check(connection.send(commit_request(identity, offsets), version, timeout), identity)

    def _settle_all(self, timeout: float | None = None) -> None:
        while self._sent:
            self._settle_one(timeout)

    def _settle_one(self, timeout: float | None = None) -> None:
        """Read the oldest answer, and tell whoever waits for it."""
        try:
            response = self._coordinator.connection().receive(timeout)
        except ConnectionFailed as error:
            self._connection_lost(error)
            raise
        except BaseException:  # Ctrl-C: what is left of the answer must not be taken for the next one
            self._coordinator.connection().close()
            raise
        offsets, identity, callback = self._sent.popleft()
        failure = None
        try:
            self._check(response, identity)
        except KafkaError as error:
            failure = error
            self._connection_lost(error)
        if callback is not None:
            callback(offsets, failure)

    def _check(self, response: OffsetCommitResponse, identity: GroupMetadata) -> None:
        """Raise the first error."""
        for partition, code in commit_codes(response):
            if code:
                error = self._error(partition, code)
                if code == ErrorCode.UNKNOWN_MEMBER_ID and not identity.member_id:
                    error = KafkaError(error.code, OF_MEMBERS.format(identity.group_id))
                self._refused(error.code, identity)
                raise error

    # -- OffsetFetch

    def _fetch(self, partitions: list[TopicPartition], timeout: float) -> Committed:
        self._settle_all(timeout)
        connection = self._coordinator.connection()
        version = connection.version_of(OffsetFetchRequest, NEWEST_BY_NAME)
        stable = self._settings.require_stable
        request = fetch_request(self._settings.group_id, partitions, version, require_stable=stable)
        found = fetched(connection.send(request, version, timeout), version)
        if found.error_code:
            raise group_error(self._settings, found.error_code)
        for partition, code in found.errors.items():
            raise self._error(partition, code)
        return {partition: found.committed.get(partition) for partition in partitions}

    def _error(self, where: TopicPartition, code: int) -> KafkaError:
        return answered_error(where, code) if code in OF_A_PARTITION else group_error(self._settings, code)


def _may_pass(error: ConnectionFailed | KafkaError) -> bool:
    if isinstance(error, ConnectionFailed) or error.code in MAY_PASS:
        return True
    return error.code.retriable and error.code not in OF_A_PARTITION
