"""Fetching: one request to each leader is always in flight, and its response waits until the buffer is empty.

A Fetch request contains an offset for each partition. The broker answers when it has `min_bytes` of records, or after
`max_wait_ms` (a *long poll*). The response contains whole batches as they are stored in the log. The first batch may
begin before the requested offset, and the decoder skips its earlier records.

The idea: the header of the last batch already contains the next offset to fetch. The fetcher therefore sends the next
request before a single record is decoded. While the application works on one response, the broker prepares the next::

    application    |  works on 0-499  |  works on 500-999   |
    fetcher        F(500)             F(1000)
    broker            |  reads 500-999   |  reads 1000-1499 |

The next response waits in the socket. The fetcher reads one response at a time, and only when the buffer is empty.
A consumer therefore holds at most `max_bytes` of fetched bytes, with any number of leaders.

An error belongs to a partition and is stored in its position. A temporary error, for example of a broker that is down,
is retried for `retry_for` seconds. The consumer raises an error after the application has received all buffered
records.

A topic that was deleted and created again has a new id. The fetcher therefore does not mistake its records for those of
the old topic. Brokers before Kafka 3.1 do not check the id in a fetch. With them, the fetcher notices the new topic
when it reads the metadata again.

Limits: fetch sessions are missing (KIP-227), which would spare a consumer of thousands of partitions to list all of
them in each request. A partition costs about 15 us in client and broker each. Fetching from followers (KIP-392) and the
detection of truncated logs (KIP-320) are missing, too.

Source: Kafka's `Fetcher` and `FetchRequest`.
"""

from __future__ import annotations

import logging
import math
import selectors
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.consuming.buffer import AbortedTransactions, FetchedBatches
from hmb.client.consuming.positions import Position
from hmb.client.errors import answered_error
from hmb.client.metadata import Cluster, Node, TopicMetadata
from hmb.client.offsets import Offset, list_offsets
from hmb.client.retries import RETRY_PAUSE
from hmb.protocol.enums import EARLIEST, LATEST, IsolationLevel
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.fetch import FetchRequest, FetchResponse
from hmb.protocol.topics import NO_TOPIC_ID, TopicPartition
from hmb.records import Batch, iter_batches

NEWEST_FETCH = FetchRequest.first_version("topics.topic_id")  # Later versions only concern followers.
NEWEST_BY_NAME = NEWEST_FETCH - 1
LARGEST_FETCH = 256 * 1024 * 1024  # bytes of one partition
GONE_AFTER = 5.0  # seconds; a topic that brokers do not know for so long is an error

LOGGER = logging.getLogger(__name__)

PartitionData = FetchResponse.FetchableTopicResponse.PartitionData


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """The settings of a fetcher. The first three are Kafka's fetch.max.wait.ms, fetch.min.bytes and fetch.max.bytes.

    `reset` is where to continue if an offset does not exist. None means that this is an error. Times are in seconds.
    """

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    reset: Offset | None
    request_timeout: float
    retry_for: float


@dataclass(slots=True)
class _PendingFetch:
    """A fetch without a response: its positions with the requested offsets, and the deadline of the response."""

    positions: dict[TopicPartition, tuple[Position, int]]
    deadline: float
    names: dict[UUID, str]


class Fetcher:
    """Fetches batches for positions, and moves `fetched` of each position past them."""

    def __init__(self, cluster: Cluster, positions: Mapping[TopicPartition, Position], settings: FetchSettings) -> None:
        self._cluster = cluster
        self._positions = positions
        self._settings = settings
        self._connections: dict[Node, Connection] = {}
        self._pending: dict[Node, _PendingFetch] = {}  # pending fetches by leader, the oldest first
        self.fetches = self.fetched_bytes = self.failures = 0

    def fetch(self, timeout: float) -> Iterator[FetchedBatches]:
        """Yield the batches of the next response of any leader, or nothing after `timeout` seconds.

        The caller must store each item at once. Its position has already moved, so it is not fetched again. A Ctrl-C
        may interrupt the rest of this method.
        """
        self.post()
        leader = self._wait(timeout)
        if leader is not None:
            yield from self._receive(leader)
            self.post()  # Send the next requests before the application works on these records.

    def post(self) -> None:
        """Send a request to each leader without a pending one."""
        now = time.monotonic()
        topics: dict[str, TopicMetadata | ConnectionFailed | KafkaError] = {}
        by_leader: dict[Node, list[Position]] = {}
        for position in self._positions.values():
            if not position.is_in_flight and position.may_fetch and position.retry_at <= now:
                try:
                    leader = self._leader(position, topics)
                except (ConnectionFailed, KafkaError) as error:
                    self.failed(position, error)
                else:
                    by_leader.setdefault(leader, []).append(position)
        for leader, positions in by_leader.items():
            if leader not in self._pending:
                self._send(leader, positions)

    def _leader(self, position: Position, topics: dict[str, TopicMetadata | ConnectionFailed | KafkaError]) -> Node:
        """Return the leader of a partition. `topics` caches lookups, as a topic may have thousands of partitions.

        Raises KafkaError if the topic was deleted and created again.
        """
        name, number = position.partition
        if name not in topics:
            try:
                topics[name] = self._cluster.topic(name)
            except (ConnectionFailed, KafkaError) as error:
                topics[name] = error
        topic = topics[name]
        if not isinstance(topic, TopicMetadata):
            raise topic
        if position.topic_id in (None, NO_TOPIC_ID):
            position.topic_id = topic.topic_id
        elif topic.topic_id not in (position.topic_id, NO_TOPIC_ID):
            self._topic_created_again(position)
        # If the partition has no leader, `Cluster.leader` raises an error with the reason.
        return topic.leaders.get(number) or self._cluster.leader(position.partition)

    def _topic_created_again(self, position: Position) -> None:
        what = f"{position.partition} was deleted and created again since offset {position.fetched}"
        if self._settings.reset is None:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{what}: seek to an offset of the new topic")
        position.start, position.topic_id = "earliest", None  # All records of the new topic are new to the consumer.
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, what)

    def failed(self, position: Position, error: ConnectionFailed | KafkaError) -> None:
        """Store an error of a partition. The fetcher retries it until `_is_hopeless` returns True."""
        self.failures += 1
        now = time.monotonic()
        position.failing_since = position.failing_since or now
        position.missing_since = (position.missing_since or now) if is_unknown_topic(error) else None
        position.retry_at = now + RETRY_PAUSE
        self._cluster.forget(position.partition.topic)
        if is_final(error) or self._is_hopeless(position, now):
            position.error = error

    def _is_hopeless(self, position: Position, now: float) -> bool:
        """Return whether an error has lasted too long. A new topic is unknown to some brokers only for a moment."""
        if position.missing_since is not None and now - position.missing_since >= GONE_AFTER:
            return True
        return position.failing_since is not None and now - position.failing_since >= self._settings.retry_for

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._pending.clear()

    def _send(self, leader: Node, positions: list[Position]) -> None:
        connection = self._connections.get(leader)
        if connection is None:
            connection = self._connections[leader] = self._cluster.connect(leader)
        try:
            ids = {it.partition.topic: it.topic_id or NO_TOPIC_ID for it in positions}
            newest = NEWEST_BY_NAME if NO_TOPIC_ID in ids.values() else NEWEST_FETCH
            connection.post(self._request(positions, ids), connection.version_of(FetchRequest, newest))
        except (ConnectionFailed, KafkaError) as error:
            for position in positions:
                self.failed(position, error)
            return
        except BaseException:  # Ctrl-C: no request may follow on a connection after half a request
            connection.close()
            raise
        deadline = time.monotonic() + self._settings.request_timeout + self._settings.max_wait_ms / 1000
        names = {topic_id: name for name, topic_id in ids.items()}
        self._pending[leader] = _PendingFetch({it.partition: (it, it.fetched) for it in positions}, deadline, names)
        for position in positions:
            position.is_in_flight = True

    def _request(self, positions: list[Position], ids: dict[str, UUID]) -> FetchRequest:
        topics: dict[str, FetchRequest.FetchTopic] = {}
        for position in positions:
            name, partition = position.partition
            topic = topics.setdefault(name, FetchRequest.FetchTopic(topic=name, topic_id=ids[name]))
            topic.partitions.append(
                FetchRequest.FetchTopic.FetchPartition(
                    partition=partition, fetch_offset=position.fetched, partition_max_bytes=position.max_bytes
                )
            )
        return FetchRequest(
            max_wait_ms=self._settings.max_wait_ms,
            min_bytes=self._settings.min_bytes,
            max_bytes=self._settings.max_bytes,
            isolation_level=self._settings.isolation_level,
            topics=list(topics.values()),
        )

    def _wait(self, timeout: float) -> Node | None:
        """Return the leader whose response has begun to arrive or is overdue. None after `timeout` seconds."""
        now = time.monotonic()
        if not self._pending:
            time.sleep(max(0.0, min(timeout, self._next_retry() - now)))
            return None
        deadline = min(pending.deadline for pending in self._pending.values())
        with selectors.DefaultSelector() as selector:
            for leader in self._pending:
                selector.register(self._connections[leader].fileno(), selectors.EVENT_READ, leader)
            ready = {
                key.data for key, _ in selector.select(max(0.0, min(timeout, deadline - now, self._next_retry() - now)))
            }
        now = time.monotonic()
        return next((leader for leader, it in self._pending.items() if leader in ready or it.deadline <= now), None)

    def _receive(self, leader: Node) -> Iterator[FetchedBatches]:
        """Read the response of a leader, yield its batches and move the positions."""
        pending, connection = self._pending.pop(leader), self._connections[leader]
        for position, _ in pending.positions.values():
            position.is_in_flight = False
        try:
            if not connection.is_answered:
                raise self._overdue(connection)
            response: FetchResponse = connection.receive(self._settings.request_timeout)
            if response.error_code:
                raise answered_error(f"fetch from {connection.address}", response.error_code)
        except (ConnectionFailed, KafkaError) as error:
            for position, _ in pending.positions.values():
                self.failed(position, error)
            return
        except BaseException:  # Ctrl-C: a later request must not receive the rest of this response
            connection.close()
            raise
        self.fetches += 1
        for topic in response.responses:
            name = topic.topic or pending.names.get(topic.topic_id, "")
            for data in topic.partitions:
                requested = pending.positions.get(TopicPartition(name, data.partition_index))
                if requested is None:
                    continue
                position, offset = requested
                if position.is_removed or not position.may_fetch or position.fetched != offset:
                    continue  # The application has moved, paused or removed the partition since the request.
                try:
                    if data.error_code:
                        raise answered_error(position.partition, data.error_code)
                    yield from self._read_partition(position, data)
                except KafkaError as error:
                    self._partition_failed(position, error)

    def _overdue(self, connection: Connection) -> ConnectionFailed:
        """Close a connection without a response, and return the error.

        A response that arrived while the application did not poll is not late.
        """
        connection.close()
        what = f"{connection.address} did not answer within {self._settings.request_timeout:g} s"
        return ConnectionFailed(connection.host, connection.port, what)

    def _read_partition(self, position: Position, data: PartitionData) -> Iterator[FetchedBatches]:
        position.failing_since = position.missing_since = None
        position.high_watermark, position.last_stable = data.high_watermark, data.last_stable_offset
        if not isinstance(data.records, memoryview) or not data.records:
            return
        self.fetched_bytes += len(data.records)
        batches: deque[Batch] = deque()
        try:
            for batch in iter_batches(data.records):
                if batch.last_offset >= position.fetched:
                    batches.append(batch)
        except KafkaError as error:
            if not batches:  # Otherwise the next fetch begins with the damaged batch and raises the error.
                where = f"{position.partition} from offset {position.fetched}"
                raise KafkaError(error.code, f"{where}: {error.message}") from error
        if batches:
            position.fetched = batches[-1].last_offset + 1
            yield FetchedBatches(position, batches, self._aborted(data))
        elif position.max_bytes < LARGEST_FETCH:
            position.max_bytes *= 2  # Brokers before Fetch v3 cut a message that is too large. Fetch more of it.
        else:
            what = f"{position.partition}: the message at {position.fetched} is too large"
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, what)

    def _aborted(self, data: PartitionData) -> AbortedTransactions | None:
        if self._settings.isolation_level != IsolationLevel.READ_COMMITTED:
            return None
        return AbortedTransactions((it.producer_id, it.first_offset) for it in data.aborted_transactions or ())

    def _partition_failed(self, position: Position, error: KafkaError) -> None:
        """Handle an error of one partition. In a group, an offset that does not exist is reset instead."""
        if error.code is ErrorCode.OFFSET_OUT_OF_RANGE and self._settings.reset is not None:
            LOGGER.warning(
                "%s does not have offset %d: the consumer continues at %s",
                position.partition,
                position.fetched,
                self._settings.reset,
            )
            position.start = self._settings.reset
            return
        try:
            if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                error = self._out_of_range(position)
        except (ConnectionFailed, KafkaError) as why:
            self.failed(position, why)
        else:
            self.failed(position, error)

    def _out_of_range(self, position: Position) -> KafkaError:
        partition = position.partition
        first = list_offsets(self._cluster, [partition], EARLIEST)[partition]
        end = list_offsets(self._cluster, [partition], LATEST)[partition]
        what = f"{partition} has no offset {position.fetched}; it starts at {first} and ends before {end}"
        return KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, what)

    def _next_retry(self) -> float:
        """Return the time at which the next failed partition may be retried."""
        return min(
            (it.retry_at for it in self._positions.values() if it.failing_since and it.may_fetch), default=math.inf
        )


def is_unknown_topic(error: Exception) -> bool:
    return isinstance(error, KafkaError) and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def is_final(error: Exception) -> bool:
    """Return whether a retry cannot help. A corrupt batch stays corrupt, although Kafka calls the error retriable."""
    return isinstance(error, KafkaError) and (not error.code.retriable or error.code is ErrorCode.CORRUPT_MESSAGE)
