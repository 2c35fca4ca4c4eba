"""The low-level consumer of Kafka 0.7 and of the thesis: one broker, and an offset in every request.

::

    consumer = hmb.SimpleConsumer("localhost:9092")
    offset = 0
    while True:
        fetched = consumer.fetch("events", 0, offset)
        for record in fetched:
            ...
        offset = fetched.next_offset

The class shows the protocol without any convenience. It stores no positions, commits nothing, finds no leaders and
retries nothing. The application must fetch a partition from the broker that leads it, and decides what to do about an
error. `hmb.Consumer` is built on the same three requests: fetch one partition, fetch several partitions in one round
trip, and list offsets.

Kafka 0.7 had no index of timestamps. Instead, a consumer could ask for the offsets at which *segments* begin, the
newest first. To read the records of the last hour, it started in the last segment that began before that hour. Brokers
before Kafka 4.0 still return these offsets (ListOffsets v0). Newer brokers find a single record by its timestamp. With
newer brokers, `offsets_before` returns the offset of that record and the first offset of the log.

Source: thesis, chapter 8.3, "Client Library"; Kafka 0.7 design, "Low-level API"; kafka.consumer.SimpleConsumer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

from hmb.client.connection import Connection
from hmb.client.errors import answered_error
from hmb.client.metadata import parse_servers
from hmb.protocol.enums import CONSUMER_REPLICA_ID, EARLIEST, LATEST
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.fetch import FetchRequest, FetchResponse
from hmb.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from hmb.protocol.topics import TopicPartition
from hmb.records import iter_batches
from hmb.records.consumer_record import ConsumerRecord
from hmb.records.fast.consumer_records import consumer_records

NEWEST_FETCH_BY_NAME = FetchRequest.first_version("topics.topic_id") - 1  # Later versions have topic ids.
MAX_BYTES = 1024 * 1024
SEGMENTS = 0  # the version of ListOffsets that lists the offsets of segments

PartitionData = FetchResponse.FetchableTopicResponse.PartitionData


class PartitionFetch(NamedTuple):
    """A fetch of one partition: its first offset, and the largest number of bytes to return."""

    topic: str
    partition: int
    offset: int
    max_bytes: int = MAX_BYTES


@dataclass(frozen=True, slots=True)
class FetchedRecords:
    """Fetched records of one partition.

    `next_offset` is the offset for the next fetch. `high_watermark` is the offset after the last readable record.
    """

    records: list[ConsumerRecord]
    next_offset: int
    high_watermark: int

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)


class SimpleConsumer:
    """A connection to one broker. It belongs to one thread. `timeout` is in seconds.

    `host` may contain the port: "localhost:9092".
    """

    def __init__(self, host: str, port: int | None = None, client_id: str = "hmb", timeout: float = 30.0) -> None:
        if port is None:
            ((host, port),) = parse_servers(host)
        self._broker = Connection(host, port, client_id, timeout)
        self._is_closed = False

    @property
    def _connection(self) -> Connection:
        if self._is_closed:  # Without this check, a request would open the connection again.
            raise RuntimeError("the consumer is closed")
        return self._broker

    def fetch(
        self, topic: str, partition: int, offset: int, max_bytes: int = MAX_BYTES, *, max_wait: float = 0.0
    ) -> FetchedRecords:
        """Return the records from an offset on: as many as fit into `max_bytes`.

        Brokers from Kafka 0.10.1 on return at least one batch. At the end of the log, the broker waits up to `max_wait`
        seconds for records. Raises KafkaError with OFFSET_OUT_OF_RANGE, NOT_LEADER_OR_FOLLOWER, or MESSAGE_TOO_LARGE if
        not even one message fits.
        """
        (fetched,) = self.multifetch([PartitionFetch(topic, partition, offset, max_bytes)], max_wait=max_wait)
        if isinstance(fetched, KafkaError):
            raise fetched
        return fetched

    def multifetch(
        self, partitions: Iterable[PartitionFetch], *, max_wait: float = 0.0
    ) -> list[FetchedRecords | KafkaError]:
        """Fetch several partitions in one request. Return the result or the error of each partition, in the same order.

        If no partition has records, the broker waits up to `max_wait` seconds.
        """
        wanted = list(partitions)
        by_partition = {TopicPartition(it.topic, it.partition): it for it in wanted}
        if len(by_partition) < len(wanted):
            raise ValueError("a request can fetch each partition only once")
        version = self._connection.version_of(FetchRequest, NEWEST_FETCH_BY_NAME)
        response: FetchResponse = self._connection.send(_request(wanted, max_wait), version)
        if response.error_code:
            raise answered_error("fetch", response.error_code)
        found = {
            (name := TopicPartition(topic.topic, data.partition_index)): _records(name, by_partition[name], data)
            for topic in response.responses
            for data in topic.partitions
            if TopicPartition(topic.topic, data.partition_index) in by_partition
        }
        nothing = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the broker did not answer for this partition")
        return [found.get(partition, nothing) for partition in by_partition]

    def offsets_before(self, topic: str, partition: int, time: int, max_offsets: int = 1) -> list[int]:
        """Return up to `max_offsets` offsets at which segments begin that are older than `time`, the newest first.

        `time` is in ms since 1970. With LATEST (-1), the list begins with the end of the log. With EARLIEST (-2), it
        only contains the start of the log.
        """
        if max_offsets < 1:
            raise ValueError(f"max_offsets must be 1 or more, not {max_offsets}")
        if SEGMENTS in self._versions_of_list_offsets():
            answer = self._list_offsets(topic, partition, time, max_offsets, SEGMENTS)
            return answer.old_style_offsets[:max_offsets]
        version = self._connection.version_of(ListOffsetsRequest)
        start = self._list_offsets(topic, partition, EARLIEST, 1, version).offset
        if time == EARLIEST:
            return [start]
        offset = self._list_offsets(topic, partition, time, 1, version).offset
        if offset < 0:  # All records are older than `time`.
            offset = self._list_offsets(topic, partition, LATEST, 1, version).offset
        return list(dict.fromkeys((offset, start)))[:max_offsets]

    def close(self) -> None:
        self._is_closed = True
        self._broker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _versions_of_list_offsets(self) -> range:
        return self._connection.versions.get(ListOffsetsRequest.api_key, range(0))

    def _list_offsets(
        self, topic: str, partition: int, time: int, max_offsets: int, version: int
    ) -> ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse:
        asked = ListOffsetsRequest.ListOffsetsTopic
        wanted = asked.ListOffsetsPartition(partition_index=partition, timestamp=time, max_num_offsets=max_offsets)
        request = ListOffsetsRequest(replica_id=CONSUMER_REPLICA_ID, topics=[asked(name=topic, partitions=[wanted])])
        response: ListOffsetsResponse = self._connection.send(request, version)
        answer = response.topics[0].partitions[0]
        if answer.error_code:
            raise answered_error(TopicPartition(topic, partition), answer.error_code)
        return answer


def _request(wanted: list[PartitionFetch], max_wait: float) -> FetchRequest:
    topics: dict[str, FetchRequest.FetchTopic] = {}
    for name, partition, offset, max_bytes in wanted:
        topic = topics.setdefault(name, FetchRequest.FetchTopic(topic=name))
        topic.partitions.append(
            FetchRequest.FetchTopic.FetchPartition(
                partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes
            )
        )
    return FetchRequest(
        max_wait_ms=int(max_wait * 1000),
        min_bytes=1,
        max_bytes=sum(each.max_bytes for each in wanted),
        topics=list(topics.values()),
    )


def _records(partition: TopicPartition, wanted: PartitionFetch, data: PartitionData) -> FetchedRecords | KafkaError:
    if data.error_code:
        return answered_error(partition, data.error_code)
    answered = data.records if isinstance(data.records, memoryview) else memoryview(b"")
    records: list[ConsumerRecord] = []
    next_offset = wanted.offset
    try:
        for batch in iter_batches(answered):
            if batch.last_offset >= wanted.offset:  # The broker sends whole batches, so earlier records may come first.
                batch.check()
                next_offset = batch.last_offset + 1
                records += () if batch.is_control else consumer_records(batch, *partition)
    except KafkaError as error:
        return KafkaError(error.code, f"{partition} from offset {next_offset}: {error.message}")
    if answered and next_offset == wanted.offset:
        what = f"{partition}: the message at offset {wanted.offset} has more than {wanted.max_bytes:,} bytes"
        return KafkaError(ErrorCode.MESSAGE_TOO_LARGE, what)
    records = [record for record in records if record.offset >= wanted.offset]
    return FetchedRecords(records, next_offset, data.high_watermark)
