"""Committing a group's offsets, and asking for them.

A commit says who makes it: the member and its generation (its epoch, in KIP-848's groups), so that the coordinator can
refuse one that has lost its partitions meanwhile. Partitions that were assigned by hand have no member behind them: the
group is a mere name then, and anybody may commit as long as it has no members.

`commit_async` sends a commit and leaves the answer on the connection; it is read when one looks there the next time.

Versions: 0 of both requests is about offsets in ZooKeeper, where brokers of 0.8.1 had them; 1, which 0.8.2 knows, about
those in Kafka, so nothing below 1 is spoken. 10 names topics by their ids, which is not needed here.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple, TypeVar

from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.errors import answered_error
from hmb.client.group_coordinator import GroupCoordinator
from hmb.client.group_errors import COORDINATOR_MOVED, group_error
from hmb.client.group_member import Backoff
from hmb.client.membership import CommitCallback, GroupMetadata, GroupSettings, OffsetAndMetadata
from hmb.client.metadata import Cluster, TopicPartition
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from hmb.protocol.schema import Request

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
Committed = dict[TopicPartition, OffsetAndMetadata | None]
T = TypeVar("T")

FIRST_IN_KAFKA, NEWEST_BY_NAME = 1, 9
FIRST_FETCH_OF_STABLE, FIRST_FETCH_OF_SEVERAL = 7, 8
OF_A_PARTITION = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    }
)
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
        self._coordinator = GroupCoordinator(cluster, settings)
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
            identity = self._post(offsets)
        except (ConnectionFailed, KafkaError) as error:
            self._connection_lost(error)
            if callback is not None:
                callback(offsets, error)
        else:
            self._sent.append(_Sent(offsets, identity, callback))

    def committed(self, partitions: Iterable[TopicPartition]) -> Committed:
        wanted = list(partitions)
        return self._until_done(lambda left: self._fetch(wanted)) if wanted else {}

    def say(self, request: Request, timeout: float) -> None:
        """The member's last word, over the same connection."""
        while self._sent:
            self._settle_one()
        self._coordinator.send(request, timeout)

    def close(self) -> None:
        with suppress(ConnectionFailed):
            while self._sent:
                self._settle_one()
        self._coordinator.forget()

    def _until_done(self, attempt: Callable[[float], T], timeout: float | None = None) -> T:
        """Try again while time may help, for `timeout` or `request_timeout`; an attempt is told what is left of it."""
        deadline = time.monotonic() + (self._settings.request_timeout if timeout is None else timeout)
        backoff = Backoff(self._settings.retry_backoff)
        while True:
            try:
                return attempt(max(0.0, deadline - time.monotonic()))
            except (ConnectionFailed, KafkaError) as error:
                self._connection_lost(error)
                now = time.monotonic()
                backoff.failed(now)
                if not _may_pass(error) or backoff.retry_at >= deadline:
                    raise
                time.sleep(backoff.retry_at - now)

    def _connection_lost(self, error: ConnectionFailed | KafkaError) -> None:
        """If it is: those who wait for an answer are told, and the coordinator is looked for anew."""
        if isinstance(error, KafkaError) and error.code not in COORDINATOR_MOVED:
            return
        self._coordinator.forget()
        waiting, self._sent = self._sent, deque()
        for sent in waiting:
            if sent.callback is not None:
                sent.callback(sent.offsets, error)

    # -- OffsetCommit

    def _commit(self, offsets: Offsets, timeout: float) -> None:
        identity = self._post(offsets)
        while self._sent:
            self._settle_one()
        self._check(self._coordinator.connection().receive(timeout), identity)

    def _post(self, offsets: Offsets) -> GroupMetadata:
        connection, identity = self._coordinator.connection(), self._identity()
        connection.post(_commit_request(offsets, identity), _version(connection, OffsetCommitRequest))
        return identity

    def _settle_one(self) -> None:
        """Read the oldest answer, and tell whoever waits for it."""
        try:
            response = self._coordinator.connection().receive()
        except ConnectionFailed as error:
            self._connection_lost(error)
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
        for topic in response.topics:
            for partition in topic.partitions:
                code = partition.error_code
                if code:
                    error = self._error(TopicPartition(topic.name, partition.partition_index), code)
                    self._refused(error.code, identity)
                    raise error

    # -- OffsetFetch

    def _fetch(self, partitions: list[TopicPartition]) -> Committed:
        while self._sent:
            self._settle_one()
        connection = self._coordinator.connection()
        version = _version(connection, OffsetFetchRequest)
        request = _fetch_request(self._settings.group_id, partitions, version)
        if self._settings.require_stable and version >= FIRST_FETCH_OF_STABLE:
            request.require_stable = True
        response: OffsetFetchResponse = connection.send(request, version)
        answer = response.groups[0] if version >= FIRST_FETCH_OF_SEVERAL else response
        if answer.error_code:
            raise group_error(self._settings, answer.error_code)
        found: Committed = dict.fromkeys(partitions)
        for topic in answer.topics:
            for each in topic.partitions:
                where = TopicPartition(topic.name, each.partition_index)
                if each.error_code and not (version == FIRST_IN_KAFKA and each.error_code in OF_A_PARTITION):
                    raise self._error(where, each.error_code)
                if each.committed_offset >= 0:  # 0.8.2 calls a partition unknown of which it has no offset
                    found[where] = OffsetAndMetadata(
                        each.committed_offset, each.metadata or "", each.committed_leader_epoch
                    )
        return found

    def _error(self, where: TopicPartition, code: int) -> KafkaError:
        return answered_error(where, code) if code in OF_A_PARTITION else group_error(self._settings, code)


def _version(connection: Connection, request: type[Request]) -> int:
    return max(FIRST_IN_KAFKA, connection.version_of(request, NEWEST_BY_NAME))


def _may_pass(error: ConnectionFailed | KafkaError) -> bool:
    if isinstance(error, ConnectionFailed) or error.code in MAY_PASS:
        return True
    return error.code.retriable and error.code not in OF_A_PARTITION


def _commit_request(offsets: Offsets, identity: GroupMetadata) -> OffsetCommitRequest:
    topics: dict[str, OffsetCommitRequest.OffsetCommitRequestTopic] = {}
    for (name, number), (offset, metadata, leader_epoch) in offsets.items():
        topic = topics.setdefault(name, OffsetCommitRequest.OffsetCommitRequestTopic(name=name))
        topic.partitions.append(
            topic.OffsetCommitRequestPartition(
                partition_index=number,
                committed_offset=offset,
                committed_leader_epoch=leader_epoch,
                committed_metadata=metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=identity.group_id,
        generation_id_or_member_epoch=identity.generation_id,
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        topics=list(topics.values()),
    )


def _fetch_request(group_id: str, partitions: list[TopicPartition], version: int) -> OffsetFetchRequest:
    numbers: dict[str, list[int]] = {}
    for name, number in partitions:
        numbers.setdefault(name, []).append(number)
    if version < FIRST_FETCH_OF_SEVERAL:
        one = OffsetFetchRequest.OffsetFetchRequestTopic
        topics = [one(name=name, partition_indexes=them) for name, them in numbers.items()]
        return OffsetFetchRequest(group_id=group_id, topics=topics)
    group = OffsetFetchRequest.OffsetFetchRequestGroup
    several = [group.OffsetFetchRequestTopics(name=name, partition_indexes=them) for name, them in numbers.items()]
    return OffsetFetchRequest(groups=[group(group_id=group_id, topics=several)])
