"""Fetching: long polls to every leader, each sent before the last one's records are handed out.

A fetch says for each partition from which offset on; the broker answers when there is something, or after
`max_wait_ms`. The answer holds whole batches as they are in the log: the first may begin before the offset asked for
(those records are skipped later), and the next offset to ask for stands in the header of the last one. So the next
fetch goes out before a single record is decoded: while the program works on these records, the broker prepares those,
and they wait in the socket. Answers are taken out of it one at a time, whichever leader was first, and only when
nothing is in hand: so a consumer holds `max_bytes` of fetched bytes at most, however many leaders there are.

What goes wrong belongs to partitions, and is noted in their positions. What time may heal (the leader has moved, is
down, is slow) is tried again for `retry_for` seconds, then it is an error; all else is one at once. The consumer
raises errors when all records in hand have been handed out.

Source: Kafka's Fetcher and FetchRequest. Left out: fetch sessions (KIP-227), which spare a consumer of thousands of
partitions to name all of them in each request (here a partition costs some 15 us a fetch, in client and broker each);
reading from followers (KIP-392); the detection of truncated logs (KIP-320). A topic that was deleted and made again has
another id, so that its records are not taken for those of the old one; but brokers before 3.1 do not ask for ids in a
fetch: there it is noticed when the metadata is read again.
"""

import logging
import math
import selectors
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.consuming.buffer import AbortedTransactions, Fetched
from hmb.client.consuming.positions import Position
from hmb.client.errors import answered_error
from hmb.client.metadata import Cluster, Node, TopicMetadata
from hmb.client.offsets import Offset, list_offsets
from hmb.protocol.enums import EARLIEST, LATEST, IsolationLevel
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.fetch import FetchRequest, FetchResponse
from hmb.protocol.topics import NO_TOPIC_ID, TopicPartition
from hmb.records import Batch, iter_batches

NEWEST_FETCH = FetchRequest.first_version("topics.topic_id")  # later versions are for followers
NEWEST_BY_NAME = NEWEST_FETCH - 1
LARGEST_FETCH = 256 * 1024 * 1024
RETRY_PAUSE = 0.1  # seconds
GONE_AFTER = 5.0  # seconds

log = logging.getLogger(__name__)

PartitionData = FetchResponse.FetchableTopicResponse.PartitionData


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """As in Kafka's fetch.max.wait.ms, fetch.min.bytes, fetch.max.bytes; the rest in seconds."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    reset: Offset | None  # where to go on if an offset is not there; None: it is an error
    request_timeout: float
    retry_for: float


@dataclass(slots=True)
class _Asked:
    """A fetch that was sent: for which positions, from which offsets on, and until when the answer is due."""

    positions: dict[TopicPartition, tuple[Position, int]]
    deadline: float
    names: dict[UUID, str]


class Fetcher:
    """Asks for what positions want, and moves them on by what came."""

    def __init__(self, cluster: Cluster, positions: Mapping[TopicPartition, Position], settings: FetchSettings) -> None:
        self._cluster = cluster
        self._positions = positions
        self._settings = settings
        self._connections: dict[Node, Connection] = {}
        self._asked: dict[Node, _Asked] = {}  # those that owe an answer; the one that has waited longest comes first
        self.fetches = self.fetched_bytes = self.failures = 0

    def fetch(self, timeout: float) -> Iterator[Fetched]:
        """The next answer, of any leader; nothing if none came in `timeout` seconds, or it was empty.

        Each part is to be kept as it comes: its position has moved on, so that it does not come again, and asking for
        what is next takes long enough for Ctrl-C.
        """
        self.post()
        leader = self._wait(timeout)
        if leader is not None:
            yield from self._receive(leader)
            self.post()  # the next ones, before anybody works on these

    def post(self) -> None:
        """Ask each leader that owes no answer for what can be read from it."""
        now = time.monotonic()
        topics: dict[str, TopicMetadata | ConnectionFailed | KafkaError] = {}
        by_leader: dict[Node, list[Position]] = {}
        for position in self._positions.values():
            if not position.is_asked and position.may_fetch and position.retry_at <= now:
                try:
                    leader = self._leader(position, topics)
                except (ConnectionFailed, KafkaError) as error:
                    self.failed(position, error)
                else:
                    by_leader.setdefault(leader, []).append(position)
        for leader, positions in by_leader.items():
            if leader not in self._asked:
                self._ask(leader, positions)

    def _leader(self, position: Position, topics: dict[str, TopicMetadata | ConnectionFailed | KafkaError]) -> Node:
        """Whom to ask; an error if the topic is not the one any more that was read so far.

        `topics` are those that were looked up already: a topic may have thousands of partitions.
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
            self._made_again(position)
        return topic.leaders.get(number) or self._cluster.leader(position.partition)  # which says what is wrong

    def _made_again(self, position: Position) -> None:
        what = f"{position.partition} was deleted and made again since offset {position.fetched}"
        if self._settings.reset is None:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{what}: seek to read on")
        position.wish, position.topic_id = "earliest", None  # all that is in it came after what was read
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, what)

    def failed(self, position: Position, error: ConnectionFailed | KafkaError) -> None:
        """Note what went wrong: it is tried again, as long as there is hope."""
        self.failures += 1
        now = time.monotonic()
        position.failing_since = position.failing_since or now
        position.gone_since = (position.gone_since or now) if _is_gone(error) else None
        position.retry_at = now + RETRY_PAUSE
        self._cluster.forget(position.partition.topic)
        if is_final(error) or self._lasted_too_long(position, now):
            position.error = error

    def _lasted_too_long(self, position: Position, now: float) -> bool:
        """A topic that is not there may have been made just now, or its broker have started, but news travel fast."""
        if position.gone_since is not None and now - position.gone_since >= GONE_AFTER:
            return True
        return position.failing_since is not None and now - position.failing_since >= self._settings.retry_for

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._asked.clear()

    def _ask(self, leader: Node, positions: list[Position]) -> None:
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
        except BaseException:  # Ctrl-C in the middle of a request: the next one must not come behind half of it
            connection.close()
            raise
        deadline = time.monotonic() + self._settings.request_timeout + self._settings.max_wait_ms / 1000
        names = {topic_id: name for name, topic_id in ids.items()}
        self._asked[leader] = _Asked({it.partition: (it, it.fetched) for it in positions}, deadline, names)
        for position in positions:
            position.is_asked = True

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
            replica_id=-1,
            max_wait_ms=self._settings.max_wait_ms,
            min_bytes=self._settings.min_bytes,
            max_bytes=self._settings.max_bytes,
            isolation_level=self._settings.isolation_level,
            topics=list(topics.values()),
        )

    def _wait(self, timeout: float) -> Node | None:
        """The leader whose answer has begun to come, or is overdue; None if there is none in time."""
        now = time.monotonic()
        if not self._asked:
            time.sleep(max(0.0, min(timeout, self._next_retry() - now)))
            return None
        overdue = min(asked.deadline for asked in self._asked.values())
        with selectors.DefaultSelector() as selector:
            for leader in self._asked:
                selector.register(self._connections[leader].fileno(), selectors.EVENT_READ, leader)
            ready = {
                key.data for key, _ in selector.select(max(0.0, min(timeout, overdue - now, self._next_retry() - now)))
            }
        now = time.monotonic()
        return next((leader for leader, asked in self._asked.items() if leader in ready or asked.deadline <= now), None)

    def _receive(self, leader: Node) -> Iterator[Fetched]:
        """Read an answer, and move on the positions that it is about."""
        asked, connection = self._asked.pop(leader), self._connections[leader]
        for position, _ in asked.positions.values():
            position.is_asked = False
        try:
            if not connection.is_answered:
                raise self._overdue(connection)
            response: FetchResponse = connection.receive(self._settings.request_timeout)
            if response.error_code:
                raise answered_error(f"fetch from {connection.address}", response.error_code)
        except (ConnectionFailed, KafkaError) as error:
            for position, _ in asked.positions.values():
                self.failed(position, error)
            return
        except BaseException:  # Ctrl-C in the middle of an answer: its rest must not be taken for the next one
            connection.close()
            raise
        self.fetches += 1
        for topic in response.responses:
            name = topic.topic or asked.names.get(topic.topic_id, "")
            for data in topic.partitions:
                about = asked.positions.get(TopicPartition(name, data.partition_index))
                if about is None:
                    continue
                position, offset = about
                if position.is_dropped or not position.may_fetch or position.fetched != offset:
                    continue  # it was moved, paused or given up meanwhile
                try:
                    if data.error_code:
                        raise answered_error(position.partition, data.error_code)
                    yield from self._read_partition(position, data)
                except KafkaError as error:
                    self._partition_failed(position, error)

    def _overdue(self, connection: Connection) -> ConnectionFailed:
        """Nothing has come, though it should have. (What came while nobody was looking is not late.)"""
        connection.close()
        what = f"{connection.address} did not answer within {self._settings.request_timeout:g} s"
        return ConnectionFailed(connection.host, connection.port, what)

    def _read_partition(self, position: Position, data: PartitionData) -> Iterator[Fetched]:
        position.failing_since = position.gone_since = None
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
            if not batches:  # else the next fetch begins with the damage
                where = f"{position.partition} from offset {position.fetched}"
                raise KafkaError(error.code, f"{where}: {error.message}") from error
        if batches:
            position.fetched = batches[-1].last_offset + 1
            yield Fetched(position, batches, self._aborted(data))
        elif position.max_bytes < LARGEST_FETCH:
            position.max_bytes *= 2  # before Fetch 3 a broker cuts a message that is too large; ask for more of it
        else:
            what = f"{position.partition}: the message at {position.fetched} is too large"
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, what)

    def _aborted(self, data: PartitionData) -> AbortedTransactions | None:
        if self._settings.isolation_level != IsolationLevel.READ_COMMITTED:
            return None
        return AbortedTransactions((it.producer_id, it.first_offset) for it in data.aborted_transactions or ())

    def _partition_failed(self, position: Position, error: KafkaError) -> None:
        """In a group an offset that is gone is a reason to begin anew; else the program has to know."""
        if error.code is ErrorCode.OFFSET_OUT_OF_RANGE and self._settings.reset is not None:
            log.warning(
                "%s has no offset %d (any more): on from %s", position.partition, position.fetched, self._settings.reset
            )
            position.wish = self._settings.reset
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
        """When something that failed may be tried again."""
        return min(
            (it.retry_at for it in self._positions.values() if it.failing_since and it.may_fetch), default=math.inf
        )


def _is_gone(error: Exception) -> bool:
    return isinstance(error, KafkaError) and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def is_final(error: Exception) -> bool:
    """Whether time cannot help: a batch that is corrupt will be corrupt the next time too."""
    return isinstance(error, KafkaError) and (not error.code.retriable or error.code is ErrorCode.CORRUPT_MESSAGE)
