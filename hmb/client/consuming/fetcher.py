"""Fetches batches of records. Before the consumer decodes the records, it sends the next Fetch request.

A Fetch request contains an offset for each partition. The broker responds when it has at least `min_bytes` bytes of new
records, or after `max_wait_ms` (a *long poll*). The response contains whole batches, as the log stores them. A batch
can begin below the requested offset: a request for offset 7 returns the batch with the records 5 to 9. The decoder then
skips the records 5 and 6.

The idea: the header of the last batch in a response already determines the next offset to fetch. The fetcher therefore
sends the next request before it decodes any record. While the application processes the records of one response, the
broker prepares the next response:
    application    |  works on 0-499  |  works on 500-999   |
    fetcher        Fetch(500)         Fetch(1000)
    broker            |  reads 500-999   |  reads 1000-1499 |

The fetcher reads a response only after the application has received all buffered records. Until then, the response
waits in the socket. Even a consumer that reads from many leaders therefore has only one response in its memory, at most
`max_bytes` bytes.

A consumer may read many partitions from one leader. The leader then remembers these partitions in a *fetch session*. A
request contains only the partitions whose positions have changed since the previous request (module `fetch_session`).
If a partition in a response has an error, the module `partition_errors` decides how to continue.

Limits: the fetcher always reads from the leader of a partition, even if a follower is nearer (KIP-392). It also does
not notice when a log is truncated (KIP-320). After an unclean leader election, the new leader may lack some records,
for example 8 and 9. New records later get these offsets. The consumer can then miss records, or read two different
records with the same offset.

Source: Kafka's `Fetcher` and `FetchRequest`.
"""

from __future__ import annotations

import selectors
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.consuming.buffer import FetchedBatches
from hmb.client.consuming.fetch_session import FetchRequestData, FetchSessionHandler, Partitions, PartitionToFetch
from hmb.client.consuming.partition_errors import PartitionErrors
from hmb.client.consuming.positions import Position
from hmb.client.errors import response_error
from hmb.client.metadata import Cluster, Node
from hmb.client.offsets import Offset
from hmb.protocol.enums import IsolationLevel
from hmb.protocol.errors import KafkaError
from hmb.protocol.messages.fetch import (
    FIRST_FETCH_VERSION_OF_IDS,
    LAST_FETCH_VERSION_OF_NAMES,
    FetchRequest,
    FetchResponse,
)
from hmb.protocol.topics import NO_TOPIC_ID, TopicPartition
from hmb.records import Batch, iter_batches
from hmb.records.aborted import AbortedTransactions

NEWEST_FETCH = FIRST_FETCH_VERSION_OF_IDS  # Newer versions only add fields for followers.

PartitionData = FetchResponse.FetchableTopicResponse.PartitionData


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """The settings of a fetcher. Times are in seconds, unless the name ends in `_ms`.

    - `max_wait_ms`, `min_bytes` and `max_bytes` are Kafka's `fetch.max.wait.ms`, `fetch.min.bytes` and
      `fetch.max.bytes`.
    - `reset` says where the fetcher continues if the log does not have the requested offset, for example at
      "latest". If `reset` is None, the fetcher reports an error instead.
    """

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    reset: Offset | None
    request_timeout: float
    retry_for: float


@dataclass(slots=True)
class FetchInFlight:
    """A Fetch request whose response has not arrived yet: the fetched partitions, and the deadline for the response.

    The response can also contain other partitions, because the leader still knows them from earlier requests of the
    same fetch session.
    """

    partitions: Partitions
    deadline: float
    names: dict[UUID, str]  # the name of each topic id, because newer responses contain only ids

    def unchanged_positions(self, response: FetchResponse) -> Iterator[tuple[Position, PartitionData]]:
        """Yield each position that has not changed since the request was sent, with its partition's data.

        The method skips a position if the application has moved the position, or paused or removed the partition, while
        the request was in flight. The consumer must then ignore the fetched records.

        If a partition has no error, the method always stores the partition's high watermark and last stable offset in
        the position, even if it skips the position. The next response of a fetch session may omit these two offsets,
        because the response contains only partitions that have changed.
        """
        for partition, data in self._named(response):
            fetched = self.partitions.get(partition)
            if fetched is None:
                continue
            position = fetched.position
            if not data.error_code:
                position.high_watermark, position.last_stable_offset = data.high_watermark, data.last_stable_offset
            if not position.is_removed and position.may_fetch and position.fetch_offset == fetched.fetch_offset:
                yield position, data

    def recovered_positions(self, response: FetchResponse) -> Collection[Position]:
        """Return the positions of partitions that had an error before this response, and are not in this response.

        In a fetch session, a response contains a partition only if the partition has new data or an error. So if a
        partition is not in the response, its earlier error is over.
        """
        failing = {name: it.position for name, it in self.partitions.items() if it.position.failing_since is not None}
        if failing:
            for partition, _ in self._named(response):
                failing.pop(partition, None)
        return failing.values()

    def _named(self, response: FetchResponse) -> Iterator[tuple[TopicPartition, PartitionData]]:
        """Yield each partition in the response, with its data."""
        for topic in response.responses:
            name = topic.topic or self.names.get(topic.topic_id, "")
            for data in topic.partitions:
                yield TopicPartition(name, data.partition_index), data


class Fetcher:
    """Fetches batches of all partitions of a consumer.

    For each partition, the consumer has a `Position`. The field `fetch_offset` of this position is the offset at which
    the next fetch begins. After each batch, the fetcher sets `fetch_offset` to the offset after the batch.
    """

    def __init__(self, cluster: Cluster, positions: Mapping[TopicPartition, Position], settings: FetchSettings) -> None:
        self._cluster = cluster
        self._positions = positions
        self._settings = settings
        self._connections: dict[Node, Connection] = {}
        self._sessions: dict[Node, FetchSessionHandler] = {}
        self._in_flight: dict[Node, FetchInFlight] = {}  # the unanswered request to each leader, the oldest first
        self.errors = PartitionErrors(cluster, positions, settings.reset, settings.retry_for)
        self.fetches = self.fetched_bytes = 0

    def fetch(self, timeout: float) -> Iterator[FetchedBatches]:
        """Wait at most `timeout` seconds for a Fetch response, and yield the batches in the response.

        For example, the batches of a partition end with offset 9. Before the method yields these batches, it sets the
        partition's `fetch_offset` to 10. The fetcher does not fetch the batches again, so the caller must store them.
        """
        self.post()
        leader = self._wait(timeout)
        if leader is not None:
            yield from self._receive(leader)
            self.post()  # Send the next requests before the application works on these records.

    def post(self) -> None:
        """Send a Fetch request to each leader, unless a request to this leader is in flight."""
        now = time.monotonic()
        by_topic: dict[str, list[Position]] = {}
        for position in self._positions.values():
            if not position.is_in_flight and position.may_fetch and position.retry_at <= now:
                by_topic.setdefault(position.partition.topic, []).append(position)
        by_leader: dict[Node, list[Position]] = {}
        for name, positions in by_topic.items():
            for position, leader in self._leaders(name, positions):
                by_leader.setdefault(leader, []).append(position)
        for leader, positions in by_leader.items():
            if leader not in self._in_flight:
                self._send(leader, positions)

    def close(self) -> None:
        """Close all connections. The responses to the requests in flight are lost."""
        for connection in self._connections.values():
            connection.close()
        self._in_flight.clear()

    def _leaders(self, name: str, positions: list[Position]) -> Iterator[tuple[Position, Node]]:
        """Yield each position in `positions`, together with the leader of its partition.

        All these partitions belong to the topic `name`. If the leader of a partition cannot be found, do not yield the
        partition's position, and handle the error (module `partition_errors`).
        """
        try:
            topic = self._cluster.topic(name)
        except (ConnectionFailed, KafkaError) as error:
            for position in positions:
                self.errors.failed(position, error)
            return
        for position in positions:
            try:
                self.errors.check_topic_id(position, topic)
                # If the partition has no leader, `Cluster.leader` raises an error with the reason.
                leader = topic.leaders.get(position.partition.partition) or self._cluster.leader(position.partition)
            except (ConnectionFailed, KafkaError) as error:
                self.errors.failed(position, error)
            else:
                yield position, leader

    def _send(self, leader: Node, positions: list[Position]) -> None:
        connection = self._connections.get(leader)
        if connection is None:
            connection = self._connections[leader] = self._cluster.connect(leader)
            self._sessions[leader] = FetchSessionHandler()
        partitions = {
            it.partition: PartitionToFetch(it, it.topic_id or NO_TOPIC_ID, it.fetch_offset, it.max_bytes)
            for it in positions
        }
        names = {each.topic_id: partition.topic for partition, each in partitions.items()}
        try:
            newest = LAST_FETCH_VERSION_OF_NAMES if NO_TOPIC_ID in names else NEWEST_FETCH
            version = connection.version_of(FetchRequest, newest)
            session = self._sessions[leader].next(partitions, version, uses_ids=version >= FIRST_FETCH_VERSION_OF_IDS)
            connection.post(self._request(session), version)
        except (ConnectionFailed, KafkaError) as error:
            for position in positions:
                self.errors.failed(position, error)
            return
        except BaseException:  # After Ctrl-C, close the connection: only a part of the request may have been sent.
            connection.close()
            raise
        deadline = time.monotonic() + self._settings.request_timeout + self._settings.max_wait_ms / 1000
        self._in_flight[leader] = FetchInFlight(partitions, deadline, names)
        for position in positions:
            position.is_in_flight = True

    def _request(self, session: FetchRequestData) -> FetchRequest:
        return FetchRequest(
            max_wait_ms=self._settings.max_wait_ms,
            min_bytes=self._settings.min_bytes,
            max_bytes=self._settings.max_bytes,
            isolation_level=self._settings.isolation_level,
            session_id=session.session_id,
            session_epoch=session.epoch,
            topics=session.topics,
            forgotten_topics_data=session.forgotten_topics,
        )

    def _wait(self, timeout: float) -> Node | None:
        """Wait until a broker begins to send its response to a Fetch request. Return this broker.

        If the deadline of a Fetch request passes without a response, return the broker to which the request was sent.

        Return None after `timeout` seconds. Return None earlier if it is time to repeat a failed fetch.
        """
        now = time.monotonic()
        if not self._in_flight:
            time.sleep(max(0.0, min(timeout, self.errors.next_retry() - now)))
            return None
        deadline = min(fetch.deadline for fetch in self._in_flight.values())
        with selectors.DefaultSelector() as selector:
            for leader in self._in_flight:
                selector.register(self._connections[leader].fileno(), selectors.EVENT_READ, leader)
            longest = min(timeout, deadline - now, self.errors.next_retry() - now)
            ready = {key.data for key, _ in selector.select(max(0.0, longest))}
        now = time.monotonic()
        return next((leader for leader, it in self._in_flight.items() if leader in ready or it.deadline <= now), None)

    def _receive(self, leader: Node) -> Iterator[FetchedBatches]:
        """Read the response of a leader, and yield the batches in the response.

        Before the method yields batches of a partition, it updates the partition's `fetch_offset`. For example, if the
        last batch ends with offset 9, the new `fetch_offset` is 10.
        """
        fetch, connection, session = self._in_flight.pop(leader), self._connections[leader], self._sessions[leader]
        positions = [it.position for it in fetch.partitions.values()]
        for position in positions:
            position.is_in_flight = False
        try:
            if not connection.has_response:
                raise self._overdue(connection)
            response: FetchResponse = connection.receive(self._settings.request_timeout)
            if session.is_lost(response.error_code):
                return
            if response.error_code:
                raise response_error(f"fetch from {connection.address}", response.error_code)
        except (ConnectionFailed, KafkaError) as error:
            for position in positions:
                self.errors.failed(position, error)
            return
        except BaseException:  # Close the connection, so that no later request receives the rest of this response.
            connection.close()
            raise
        self.fetches += 1
        for position in fetch.recovered_positions(response):
            position.failing_since = position.missing_since = None
        for position, data in fetch.unchanged_positions(response):
            try:
                if data.error_code:
                    raise response_error(position.partition, data.error_code)
                yield from self._read_partition(position, data)
            except KafkaError as error:
                self.errors.fetch_failed(position, error)
        session.completed(response.session_id)

    def _overdue(self, connection: Connection) -> ConnectionFailed:
        """Close a connection because a response has not arrived in time.

        Return the error that reports the missing response.
        """
        connection.close()
        what = f"{connection.address} did not answer within {self._settings.request_timeout:g} s"
        return ConnectionFailed(connection.host, connection.port, what)

    def _read_partition(self, position: Position, data: PartitionData) -> Iterator[FetchedBatches]:
        position.failing_since = position.missing_since = None
        if not isinstance(data.records, memoryview) or not data.records:
            return
        self.fetched_bytes += len(data.records)
        batches: deque[Batch] = deque()
        try:
            for batch in iter_batches(data.records):
                if batch.last_offset >= position.fetch_offset:
                    batches.append(batch)
        except KafkaError as error:
            # If intact batches come before the damaged batch, the consumer must get their records first. The next
            # request then begins at the damaged batch, and the fetcher raises the error.
            if not batches:
                where = f"cannot read {position.partition} from offset {position.fetch_offset}"
                raise KafkaError(error.code, f"{where}: {error.message}") from error
        if batches:
            position.fetch_offset = batches[-1].last_offset + 1
            yield FetchedBatches(position, batches, self._aborted(data))
        else:
            self.errors.message_was_cut(position)

    def _aborted(self, data: PartitionData) -> AbortedTransactions | None:
        if self._settings.isolation_level != IsolationLevel.READ_COMMITTED:
            return None
        return AbortedTransactions((it.producer_id, it.first_offset) for it in data.aborted_transactions or ())
