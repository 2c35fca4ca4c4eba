"""Fetching: long polls to every leader, each sent before the last one's records are handed out.

A fetch says for each partition from which offset on; the broker answers when there is something, or after
`max_wait`. The answer holds whole batches as they are in the log: the first may begin before the offset asked for
(those records are skipped here), and the next offset to ask for stands in the header of the last one. So the next
fetch can go out before a single record is decoded: while the program works on these, the broker prepares those.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.errors import answered_error
from hmb.client.metadata import Cluster, Node, TopicPartition
from hmb.client.offsets import EARLIEST, LATEST, list_offsets
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.fetch import FetchRequest, FetchResponse
from hmb.records import Batch, Header, TimestampType, iter_batches

NEWEST_FETCH = 12  # 13 names topics by their ids, which this client does not keep
LARGEST_FETCH = 256 * 1024 * 1024

PartitionData = FetchResponse.FetchableTopicResponse.PartitionData


class ConsumerRecord(NamedTuple):
    """A record and where it was; the timestamp is in ms since 1970, -1 in formats without one."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


@dataclass(slots=True)
class Position:
    """How far a partition is read."""

    partition: TopicPartition
    offset: int  # the next to fetch
    end: int | None  # stop before this offset; None: never
    max_bytes: int

    @property
    def at_end(self) -> bool:
        return self.end is not None and self.offset >= self.end


class Fetched(NamedTuple):
    """A batch, still to be decoded, and which offsets of it are wanted."""

    partition: TopicPartition
    batch: Batch
    first: int
    end: int | None

    def records(self) -> list[ConsumerRecord]:
        """KafkaError if the batch is damaged."""
        topic, partition = self.partition
        batch, first, end = self.batch, self.first, self.end
        try:
            batch.check()
            return [
                ConsumerRecord(
                    topic,
                    partition,
                    record.offset,
                    record.timestamp,
                    record.timestamp_type,
                    record.key,
                    record.value,
                    record.headers,
                )
                for record in (() if batch.is_control else batch.records())
                if record.offset >= first and (end is None or record.offset < end)
            ]
        except KafkaError as error:
            where = f"{self.partition}, batch that ends at offset {batch.last_offset}"
            raise KafkaError(error.code, f"{where}: {error.message}") from error


class Fetcher:
    """Fetches for some positions, and moves them on."""

    def __init__(
        self, cluster: Cluster, positions: Iterable[Position], *, max_wait_ms: int, max_bytes: int, retry_for: float
    ) -> None:
        self._cluster = cluster
        self._positions = {position.partition: position for position in positions}
        self._max_wait_ms, self._max_bytes = max_wait_ms, max_bytes
        self._retry_for = retry_for
        self._connections: dict[Node, Connection] = {}
        self._failing_since: float | None = None
        self._put_off: ConnectionFailed | KafkaError | None = None  # what went wrong while there were records in hand

    @property
    def at_end(self) -> bool:
        return all(position.at_end for position in self._positions.values())

    def fetch(self) -> list[Fetched]:
        """What the leaders have to say, each asked once; waits for `max_wait_ms` if there is nothing.

        Records that have come are handed out first: an error that comes with them is met by the next call.
        """
        if self._put_off is not None:
            error, self._put_off = self._put_off, None
            self._pause_or_raise(error)
        fetched: list[Fetched] = []
        try:
            self._post()
            for connection in self._connections.values():
                if connection.waiting:
                    for batch in self._read(connection.receive()):
                        fetched.append(batch)  # one by one: they stay when something goes wrong later
            self._failing_since = None
        except (ConnectionFailed, KafkaError) as error:
            if not fetched:
                self._pause_or_raise(error)
            else:
                self._put_off = error
        if fetched and self._put_off is None:
            self._post_ahead()
        return fetched

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def _post(self) -> None:
        """Ask each leader that owes no answer."""
        by_leader: dict[Node, list[Position]] = {}
        for position in self._positions.values():
            if not position.at_end:
                by_leader.setdefault(self._leader(position.partition), []).append(position)
        for leader, positions in by_leader.items():
            if leader not in self._connections:
                self._connections[leader] = self._cluster.connect(leader)
            connection = self._connections[leader]
            if not connection.waiting:
                connection.post(self._request(positions), connection.version_of(FetchRequest, NEWEST_FETCH))

    def _post_ahead(self) -> None:
        try:
            self._post()
        except (ConnectionFailed, KafkaError):
            return  # the next `fetch` meets it again, with no records in hand

    def _leader(self, partition: TopicPartition) -> Node:
        leader = self._cluster.topic(partition.topic).leaders.get(partition.partition)
        if leader is None:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader at the moment")
        return leader

    def _request(self, positions: list[Position]) -> FetchRequest:
        topics: dict[str, FetchRequest.FetchTopic] = {}
        for position in positions:
            name, partition = position.partition
            topic = topics.setdefault(name, FetchRequest.FetchTopic(topic=name))
            topic.partitions.append(
                FetchRequest.FetchTopic.FetchPartition(
                    partition=partition, fetch_offset=position.offset, partition_max_bytes=position.max_bytes
                )
            )
        return FetchRequest(
            replica_id=-1,
            max_wait_ms=self._max_wait_ms,
            min_bytes=1,
            max_bytes=self._max_bytes,
            topics=list(topics.values()),
        )

    def _read(self, response: FetchResponse) -> Iterator[Fetched]:
        if response.error_code:
            raise answered_error("fetch", response.error_code)
        failed: KafkaError | None = None
        for topic in response.responses:
            for data in topic.partitions:
                position = self._positions[TopicPartition(topic.topic, data.partition_index)]
                try:
                    yield from self._read_partition(position, data)
                except KafkaError as error:
                    failed = failed or error
        if failed is not None:
            raise failed

    def _read_partition(self, position: Position, data: PartitionData) -> Iterator[Fetched]:
        if data.error_code:
            raise self._partition_error(position, data)
        if isinstance(data.records, memoryview) and data.records:
            yield from self._move_on(position, data.records)

    def _move_on(self, position: Position, records: memoryview) -> Iterator[Fetched]:
        try:
            batches = [batch for batch in iter_batches(records) if batch.last_offset >= position.offset]
        except KafkaError as error:
            where = f"{position.partition} from offset {position.offset}"
            raise KafkaError(error.code, f"{where}: {error.message}") from error
        if batches:
            first, position.offset = position.offset, batches[-1].last_offset + 1
            for batch in batches:
                yield Fetched(position.partition, batch, first, position.end)
        elif position.max_bytes < LARGEST_FETCH:
            position.max_bytes *= 2  # before Fetch 3 a broker cuts a message that is too large; ask for more of it
        else:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE, f"{position.partition}: the message at {position.offset} is too large"
            )

    def _partition_error(self, position: Position, data: PartitionData) -> KafkaError:
        if data.error_code != ErrorCode.OFFSET_OUT_OF_RANGE:
            return answered_error(position.partition, data.error_code)
        partition = position.partition
        first = list_offsets(self._cluster, [partition], EARLIEST)[partition]
        end = list_offsets(self._cluster, [partition], LATEST)[partition]
        what = f"{partition} has no offset {position.offset}; it starts at {first} and ends before {end}"
        return KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, what)

    def _pause_or_raise(self, error: ConnectionFailed | KafkaError) -> None:
        """Time may help: forget what may be old and let the next `fetch` try again, for `retry_for` seconds."""
        now = time.monotonic()
        self._failing_since = self._failing_since or now
        final = isinstance(error, KafkaError) and (
            not error.code.retriable or error.code is ErrorCode.CORRUPT_MESSAGE  # it will be corrupt the next time too
        )
        if final or now - self._failing_since >= self._retry_for:
            raise error
        for partition in self._positions:
            self._cluster.forget(partition.topic)
        time.sleep(0.1)
