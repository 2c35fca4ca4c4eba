"""The simple consumer of Kafka 0.7 and of the thesis: it reads from one broker, and each request contains an offset.

This program reads partition 0 of the topic "events" from the beginning:
    consumer = hmb.SimpleConsumer("localhost:9092")
    offset = 0
    while True:
        fetched = consumer.fetch("events", 0, offset)
        for record in fetched:
            ...
        offset = fetched.next_offset

`SimpleConsumer` does nothing except send requests and decode responses. It stores no positions, commits no offsets,
finds no leaders and repeats no requests. The application must do this work itself, and must handle errors. The consumer
has three operations: fetch one partition, fetch several partitions with one request, and list offsets. `hmb.Consumer`
uses the same requests.

Kafka 0.7 had no index of timestamps. A broker knew only when each *segment* (file) of a log was last changed.
For a given time, it returned the first offsets of the segments that were last changed at or before this time.

For example, segment A was last changed at 10:30, and the next segment B at 11:30. A consumer wanted the records
since 11:00. The broker returned the first offset of A, because B was changed after 11:00. The consumer started
there, and skipped records from before 11:00.

The method `offsets_before` requests the first offsets of segments. Only version 0 of the ListOffsets request
returns these offsets, and brokers from Kafka 4.0 on do not support version 0. In later versions, a response
contains only one offset for each partition.

If a broker does not support version 0 of ListOffsets, `offsets_before` returns at most two offsets. For
example, a log contains the offsets 50 to 99. If record 70 is the first record at or after the timestamp, the
result is [70, 50]. If all records are older, 100 (the end of the log) replaces 70.

Source: thesis, chapter 8.3, "Client Library"; Kafka 0.7 design, "Low-level API"; kafka.consumer.SimpleConsumer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

from hmb.client.connection import Connection
from hmb.client.errors import response_error
from hmb.client.metadata import parse_servers
from hmb.client.security.settings import ClientSecurity, SecuritySettings, client_security
from hmb.client.settings import CLIENT_ID, REQUEST_TIMEOUT
from hmb.protocol.enums import CONSUMER_REPLICA_ID, EARLIEST, LATEST
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.fetch import LAST_FETCH_VERSION_OF_NAMES, FetchRequest, FetchResponse
from hmb.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from hmb.protocol.topics import TopicPartition
from hmb.records import iter_batches
from hmb.records.consumer_record import ConsumerRecord
from hmb.records.fast.consumer_records import consumer_records

MAX_BYTES = 1024 * 1024
SEGMENTS = 0  # version 0 of ListOffsets: its responses contain the base offsets of segments

PartitionData = FetchResponse.FetchableTopicResponse.PartitionData


class PartitionFetch(NamedTuple):
    """One partition to fetch: the offset of the first record, and the largest number of bytes in the response."""

    topic: str
    partition: int
    offset: int
    max_bytes: int = MAX_BYTES


@dataclass(frozen=True, slots=True)
class FetchedRecords:
    """The records of one partition in a Fetch response.

    `next_offset` is the offset at which the next fetch must begin. `high_watermark` is the partition's high
    watermark: consumers can read only the records below this offset.
    """

    records: list[ConsumerRecord]
    next_offset: int
    high_watermark: int

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)


class SimpleConsumer:
    """A consumer that reads from one broker. Only one thread may use the consumer.

    `host` may contain the port, for example "localhost:9092". `timeout` is in seconds.
    """

    def __init__(
        self,
        host: str,
        port: int | None = None,
        client_id: str = CLIENT_ID,
        timeout: float = REQUEST_TIMEOUT,
        security: SecuritySettings | ClientSecurity | None = None,
    ) -> None:
        if port is None:
            ((host, port),) = parse_servers(host)
        self._broker = Connection(host, port, client_id, timeout, security=client_security(security))
        self._is_closed = False

    @property
    def _connection(self) -> Connection:
        if self._is_closed:  # Without this check, a request would open the connection again.
            raise RuntimeError("the consumer is closed")
        return self._broker

    def fetch(
        self, topic: str, partition: int, offset: int, max_bytes: int = MAX_BYTES, *, max_wait: float = 0.0
    ) -> FetchedRecords:
        """Return the record at `offset`, and the records after it, up to a size of `max_bytes` bytes.

        From Kafka 0.10.1 on, a broker returns at least one batch, even if this batch is larger than `max_bytes`. If
        `offset` is the end of the log, the broker waits at most `max_wait` seconds for new records. Raises KafkaError,
        for example with one of these codes:

        - OFFSET_OUT_OF_RANGE: the log does not have the offset.
        - NOT_LEADER_OR_FOLLOWER: the broker is not the leader of the partition.
        - MESSAGE_TOO_LARGE: the message at `offset` is larger than `max_bytes` (only with brokers older than Kafka
          0.10.1).
        """
        (fetched,) = self.multifetch([PartitionFetch(topic, partition, offset, max_bytes)], max_wait=max_wait)
        if isinstance(fetched, KafkaError):
            raise fetched
        return fetched

    def multifetch(
        self, partitions: Iterable[PartitionFetch], *, max_wait: float = 0.0
    ) -> list[FetchedRecords | KafkaError]:
        """Fetch several partitions with one request. Return the records or the error of each partition.

        The order of the results is the order of `partitions`. If no partition has new records, the broker waits at most
        `max_wait` seconds for records.
        """
        wanted = list(partitions)
        by_partition = {TopicPartition(it.topic, it.partition): it for it in wanted}
        if len(by_partition) < len(wanted):
            raise ValueError("a request can fetch each partition only once")
        version = self._connection.version_of(FetchRequest, LAST_FETCH_VERSION_OF_NAMES)
        response: FetchResponse = self._connection.send(_request(wanted, max_wait), version)
        if response.error_code:
            raise response_error("fetch", response.error_code)
        found = {
            (name := TopicPartition(topic.topic, data.partition_index)): _records(name, by_partition[name], data)
            for topic in response.responses
            for data in topic.partitions
            if TopicPartition(topic.topic, data.partition_index) in by_partition
        }
        nothing = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "this partition is missing in the response of the broker")
        return [found.get(partition, nothing) for partition in by_partition]

    def offsets_before(self, topic: str, partition: int, time: int, max_offsets: int = 1) -> list[int]:
        """Return at most `max_offsets` offsets of a partition, the greatest offset first.

        If `time` is LATEST (-1), the list begins with the end of the log. If `time` is EARLIEST (-2), the list contains
        only the first offset of the log.

        Any other `time` is in ms since 1970. A broker that supports version 0 of ListOffsets returns the base offsets
        of segments whose file was not changed after `time`.

        For brokers without version 0 (Kafka 4.0 or later), the list begins with the offset of the first record at or
        after `time`, or with the end of the log if all records are older. If `max_offsets` is above 1, the list also
        contains the first offset of the log.
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
            raise response_error(TopicPartition(topic, partition), answer.error_code)
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
        return response_error(partition, data.error_code)
    answered = data.records if isinstance(data.records, memoryview) else memoryview(b"")
    records: list[ConsumerRecord] = []
    next_offset = wanted.offset
    try:
        for batch in iter_batches(answered):
            if batch.last_offset >= wanted.offset:  # The response may begin with batches below this offset.
                batch.check()
                records += () if batch.is_control else consumer_records(batch, *partition)
                next_offset = batch.last_offset + 1
    except KafkaError as error:
        return KafkaError(error.code, f"cannot read {partition} from offset {next_offset}: {error.message}")
    if answered and next_offset == wanted.offset:
        what = f"{partition}: the message at offset {wanted.offset} has more than {wanted.max_bytes:,} bytes"
        return KafkaError(ErrorCode.MESSAGE_TOO_LARGE, what)
    records = [record for record in records if record.offset >= wanted.offset]
    return FetchedRecords(records, next_offset, data.high_watermark)
