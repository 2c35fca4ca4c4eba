"""Tests of the low-level consumer: each call sends one request, and returns its response or raises its error."""

from __future__ import annotations

import pytest

import hmb
from hmb.client.admin import NewTopic
from hmb.client.consuming.simple_consumer import FetchedRecords, PartitionFetch
from hmb.protocol.enums import EARLIEST, LATEST
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from hmb.protocol.schema import Request, Response
from hmb.records import encode_batch
from hmb.records.batch import CRC_START, RECORD_BATCH_OVERHEAD, assemble
from tests.client.consuming.scripted_log import RECORDS, Log
from tests.client.scripted_broker import ScriptedBroker


def produced(servers: str, topic: str, count: int) -> None:
    with hmb.Producer(servers) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, partition=0, timestamp=1000 + number).result()


def values(fetched: FetchedRecords | KafkaError) -> list[bytes]:
    assert isinstance(fetched, FetchedRecords)
    return [record.value for record in fetched]


def test_a_log_is_read_fetch_by_fetch(servers: str) -> None:
    produced(servers, "walked", 5)
    read: list[bytes] = []
    with hmb.SimpleConsumer(servers) as consumer:
        offset, fetches = 0, 0
        # The broker returns at least one batch, even if this batch is larger than `max_bytes`.
        while fetched := consumer.fetch("walked", 0, offset, max_bytes=1):
            read += values(fetched)
            offset, fetches = fetched.next_offset, fetches + 1
    assert read == [b"0", b"1", b"2", b"3", b"4"]
    assert fetches == 5
    assert (fetched.next_offset, fetched.high_watermark) == (5, 5)


def test_a_fetch_starts_within_a_batch(servers: str) -> None:
    with hmb.Producer(servers, linger_ms=1000) as producer:
        for number in range(5):
            producer.send("batched", b"%d" % number, partition=0)
    host, _, port = servers.partition(":")
    with hmb.SimpleConsumer(host, int(port)) as consumer:
        assert values(consumer.fetch("batched", 0, 3)) == [b"3", b"4"]


def test_the_error_of_a_damaged_batch_contains_the_offset_of_the_batch() -> None:
    """The CRC of the second batch is right, so only the decoder finds the damaged record at offset 2."""
    intact, record = encode_batch(RECORDS[:2]), encode_batch(RECORDS[2:3])
    header = record[CRC_START:RECORD_BATCH_OVERHEAD]
    damaged = assemble(2, -1, header, b"\x7f" + record[RECORD_BATCH_OVERHEAD + 1 :])
    with ScriptedBroker(Log(intact + damaged, 3)) as broker, hmb.SimpleConsumer(broker.address) as consumer:
        with pytest.raises(KafkaError, match="cannot read t-0 from offset 2: the uncompressed record") as caught:
            consumer.fetch("t", 0, 0)
        assert caught.value.code is ErrorCode.INVALID_RECORD


def test_several_partitions_are_fetched_at_once_and_an_error_of_one_is_its_own(servers: str) -> None:
    produced(servers, "several", 2)
    with hmb.SimpleConsumer(servers) as consumer:
        wanted = [("several", 2, 0), ("several", 0, 1), ("several", 0 + 1, 7), ("nowhere", 0, 0)]
        empty, one, beyond, nowhere = consumer.multifetch([PartitionFetch(*each) for each in wanted])
        assert values(empty) == []
        assert values(one) == [b"1"]
        assert isinstance(beyond, KafkaError)
        assert beyond.code is ErrorCode.OFFSET_OUT_OF_RANGE
        assert isinstance(nowhere, KafkaError)
        assert nowhere.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        with pytest.raises(KafkaError, match=r"several-0: .*does not hold this offset"):
            consumer.fetch("several", 0, 9)
        with pytest.raises(ValueError, match="each partition only once"):
            consumer.multifetch([PartitionFetch("several", 0, 0), PartitionFetch("several", 0, 1)])


def test_offsets_before_a_time_are_starts_of_segments() -> None:
    with hmb.Broker() as broker:
        with hmb.Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("rolled", 1, configs={"segment.bytes": "1048576"})])
        with hmb.Producer(broker.bootstrap_servers) as producer:
            for number in range(5):
                producer.send("rolled", bytes(500_000), timestamp=1000 + number).result()
        with hmb.SimpleConsumer(broker.bootstrap_servers) as consumer:
            assert consumer.offsets_before("rolled", 0, LATEST, 9) == [5, 4, 2, 0]
            assert consumer.offsets_before("rolled", 0, LATEST, 2) == [5, 4]
            assert consumer.offsets_before("rolled", 0, EARLIEST, 9) == [0]
            assert consumer.offsets_before("rolled", 0, 0, 9) == []
            with pytest.raises(ValueError, match="1 or more"):
                consumer.offsets_before("rolled", 0, LATEST, 0)


@pytest.mark.parametrize(
    ("time", "count", "offsets"), [(LATEST, 9, [50, 10]), (LATEST, 1, [50]), (EARLIEST, 9, [10]), (7, 9, [20, 10])]
)
def test_a_broker_that_no_longer_lists_segments(time: int, count: int, offsets: list[int]) -> None:
    def answer(request: Request, version: int) -> Response:
        assert isinstance(request, ListOffsetsRequest)
        asked = request.topics[0].partitions[0].timestamp
        topic = ListOffsetsResponse.ListOffsetsTopicResponse(name="t")
        found = {LATEST: 50, EARLIEST: 10, 7: 20}[asked]
        topic.partitions.append(topic.ListOffsetsPartitionResponse(partition_index=0, offset=found))
        return ListOffsetsResponse(topics=[topic])

    with ScriptedBroker(answer) as broker, hmb.SimpleConsumer(broker.address) as consumer:
        broker.oldest_versions = {ListOffsetsRequest: 1}
        assert consumer.offsets_before("t", 0, time, count) == offsets


def test_a_closed_client_does_not_connect_again(servers: str) -> None:
    produced(servers, "closed", 1)
    with hmb.SimpleConsumer(servers) as consumer:
        assert consumer.fetch("closed", 0, 0)
    with pytest.raises(RuntimeError, match="the consumer is closed"):
        consumer.fetch("closed", 0, 0)
    with pytest.raises(RuntimeError, match="the consumer is closed"):
        consumer.offsets_before("closed", 0, LATEST)
    consumer.close()
