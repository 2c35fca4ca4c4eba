"""Tests of the fetcher: it has one request in flight while the application processes the last response."""

from __future__ import annotations

import time

from hmb.client import Consumer, TopicPartition
from hmb.protocol.messages.fetch import FetchRequest
from hmb.protocol.messages.metadata import MetadataRequest, MetadataResponse
from hmb.records import Record, encode_batch
from tests.client.consuming.scripted_log import RECORDS, Log
from tests.client.scripted_broker import ScriptedBroker


class Piecemeal(Log):
    """A log that returns one batch with two records in each response."""

    def __init__(self, batches: int) -> None:
        super().__init__(b"", 2 * batches)
        self.batches = [
            encode_batch(
                [Record(timestamp=1, value=b"%d" % (2 * number + it)) for it in (0, 1)], base_offset=2 * number
            )
            for number in range(batches)
        ]

    @property  # type: ignore[override]
    def data(self) -> bytes:
        asked = self.asked[-1][0] // 2
        return self.batches[asked] if asked < len(self.batches) else b""

    @data.setter
    def data(self, data: bytes) -> None:
        pass


def offsets_asked(broker: ScriptedBroker, count: int) -> list[int]:
    """Wait until the broker has received `count` fetches. Return the fetch offset of each."""
    deadline = time.monotonic() + 10
    while True:
        asked = [it.topics[0].partitions[0].fetch_offset for it, _ in broker.requests if isinstance(it, FetchRequest)]
        if len(asked) >= count or time.monotonic() > deadline:
            return asked
        time.sleep(0.001)


def test_only_one_fetch_is_sent_before_the_buffered_records_are_returned() -> None:
    with ScriptedBroker(Piecemeal(5)) as broker, Consumer(broker.address, "t") as consumer:
        for number in range(3):
            assert [it.value for it in consumer.poll(10, 1)] == [b"%d" % (2 * number)]
            assert offsets_asked(broker, number + 2) == list(range(0, 2 * number + 3, 2))
            assert [it.value for it in consumer.poll(10, 1)] == [b"%d" % (2 * number + 1)]
            assert offsets_asked(broker, number + 2) == list(range(0, 2 * number + 3, 2))


def test_a_fetch_contains_the_settings_of_the_consumer() -> None:
    with ScriptedBroker(Log(encode_batch(RECORDS), 4)) as broker:
        options = {"max_wait_ms": 7, "min_bytes": 8, "max_bytes": 90_000, "max_partition_bytes": 10_000}
        with Consumer(broker.address, "t", isolation_level="read_committed", **options) as consumer:  # type: ignore[arg-type]
            assert len(consumer.poll(10)) == 4
        fetch = next(it for it, _ in broker.requests if isinstance(it, FetchRequest))
        assert (fetch.max_wait_ms, fetch.min_bytes, fetch.max_bytes, fetch.isolation_level) == (7, 8, 90_000, 1)
        assert fetch.topics[0].partitions[0].partition_max_bytes == 10_000


def test_a_response_that_arrived_between_two_polls_is_not_late() -> None:
    with ScriptedBroker(Piecemeal(5)) as broker, Consumer(broker.address, "t") as consumer:
        assert len(consumer.poll(10)) == 2
        offsets_asked(broker, 2)
        fetcher = consumer._reader.fetcher
        for fetch in fetcher._in_flight.values():
            fetch.deadline = 0.0
        while not all(connection.has_response for connection in fetcher._connections.values()):
            time.sleep(0.001)
        assert [it.value for it in consumer.poll(10)] == [b"2", b"3"]
        assert fetcher.errors.count == 0


def test_a_response_to_a_fetch_from_another_offset_is_ignored() -> None:
    with ScriptedBroker(Piecemeal(5)) as broker, Consumer(broker.address, "t") as consumer:
        assert len(consumer.poll(10)) == 2  # The consumer has already sent the next fetch, from offset 2.
        consumer.seek(TopicPartition("t", 0), 6)
        assert [it.value for it in consumer.poll(10)] == [b"6", b"7"]


def test_a_topic_is_looked_up_once_for_all_its_partitions() -> None:
    topic = MetadataResponse.MetadataResponseTopic
    partition = topic.MetadataResponsePartition
    asked = []

    with ScriptedBroker(Log(b"", 0)) as broker:

        def metadata(request: MetadataRequest) -> MetadataResponse:
            asked.append(request)
            return MetadataResponse(
                brokers=[MetadataResponse.MetadataResponseBroker(node_id=7, host="127.0.0.1", port=broker.port)],
                topics=[topic(name="t", partitions=[partition(partition_index=it, leader_id=7) for it in range(50)])],
            )

        broker.metadata = metadata
        with Consumer(broker.address, "t", offset=0, max_wait_ms=1) as consumer:
            assert consumer.poll(0.1) == []
            assert len(asked) <= 2
            fetch = next(it for it, _ in broker.requests if isinstance(it, FetchRequest))
            assert len(fetch.topics[0].partitions) == 50
