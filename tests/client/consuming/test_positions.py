"""Tests of positions: `assign`, `seek`, `pause`, and polls that stop at a given offset (`until`)."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from hmb.client import Consumer, ConsumerRecord, Producer, TopicPartition
from hmb.client.admin import Admin
from hmb.client.offsets import AtTime, FromStart
from hmb.protocol.errors import ErrorCode, KafkaError

DAY = 86_400_000
NOW = 1_700_000_000_000
NAME = re.compile(r"[^a-z0-9]+", re.I)


def write(servers: str, topic: str, count: int = 10, partition: int = 0) -> TopicPartition:
    """Produce the records 0, 1, 2 ... in one batch each. Their timestamps are one day apart."""
    with Producer(servers) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, partition=partition, timestamp=NOW + number * DAY).result()
    return TopicPartition(topic, partition)


def read(consumer: Consumer, count: int) -> list[int]:
    """Poll until the consumer has returned `count` records, and return their values as numbers."""
    found: list[ConsumerRecord] = []
    deadline = time.monotonic() + 10
    while len(found) < count and time.monotonic() < deadline:
        found += consumer.poll(1, count - len(found))
    return [int(record.value) for record in found]


@pytest.mark.parametrize(
    ("offset", "first"),
    [("earliest", 0), (7, 7), (-2, 8), (FromStart(3), 3), (FromStart(99), 10), (AtTime(NOW + DAY + 1), 2),
     (AtTime(NOW + 99 * DAY), 10), ("latest", 10)],
)  # fmt: skip
def test_the_start_of_a_consumer(servers: str, offset: Any, first: int) -> None:
    partition = write(servers, f"starts-{NAME.sub('-', str(offset))}")
    with Consumer(servers, partition.topic, partitions=[0], offset=offset) as consumer:
        assert consumer.position(partition) == first
        consumer.seek(partition, 0)
        consumer.seek(partition, offset)
        assert consumer.position(partition) == first


@pytest.mark.parametrize(
    ("until", "last"), [(4, 3), (AtTime(NOW + 4 * DAY), 3), (AtTime(NOW + 99 * DAY), 9), ("end", 9)]
)
def test_the_end_of_a_consumer(servers: str, until: Any, last: int) -> None:
    partition = write(servers, f"stops-{last}-{until == 'end'}")
    with Consumer(servers, partition.topic, partitions=[0], until=until) as consumer:
        assert [int(record.value) for record in consumer] == list(range(last + 1))
        assert consumer.at_end
        assert consumer.poll(10) == []


def test_a_consumer_waits_for_the_offset_at_which_it_stops(servers: str) -> None:
    partition = write(servers, "later", 3)
    with Consumer(servers, "later", partitions=[0], until=5) as consumer:
        assert read(consumer, 3) == [0, 1, 2]
        assert not consumer.at_end
        write(servers, "later", 3)
        assert [int(record.value) for record in consumer] == [0, 1]
        assert consumer.at_end
        assert consumer.position(partition) == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"until": -1}, "until must be .*, not -1"),
        ({"until": "latest"}, "until must be .*, not 'latest'"),
        ({"until": FromStart(3)}, "until must be .*, not FromStart"),
        ({"offset": AtTime(-1)}, "the number in AtTime or FromStart must be 0 or more"),
        ({"offset": FromStart(-1)}, "the number in AtTime or FromStart must be 0 or more"),
        ({"isolation_level": "serializable"}, "an isolation level must be one of read_uncommitted, read_committed"),
        ({"group": "g", "partitions": [0]}, r"use assign\(\) instead of partitions"),
        ({"pattern": "x"}, "by name or by pattern"),
    ],
)
def test_invalid_positions_of_the_consumer(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Consumer("127.0.0.1:1", "t", **options)


def test_assigned_partitions_are_read_and_no_others(servers: str) -> None:
    one, two = write(servers, "hand", 3, 1), write(servers, "hand", 3, 2)
    write(servers, "hand", 3, 0)
    with Consumer(servers, until="end") as consumer:
        consumer.assign([one, two])
        assert consumer.assignment == {one, two}
        polls = iter(lambda: consumer.poll(1, 1), [])
        assert {record.partition for records in polls for record in records} == {1, 2}
        consumer.assign({one: 2})
        assert consumer.assignment == {one}
        assert read(consumer, 1) == [2]
        assert consumer.at_end


def test_an_assigned_partition_that_is_not_there_is_named(servers: str) -> None:
    write(servers, "three", 1)
    with (
        Consumer(servers) as consumer,
        pytest.raises(KafkaError, match="topic 'three' has no partition 9; its partitions are 0 to 2"),
    ):
        consumer.assign([TopicPartition("three", 9)])


def test_seeking_moves_the_position_and_discards_buffered_records(servers: str) -> None:
    partition = write(servers, "seek")
    with Consumer(servers, "seek", partitions=[0]) as consumer:
        assert read(consumer, 2) == [0, 1]
        consumer.seek(partition, 8)
        assert consumer.position(partition) == 8
        assert read(consumer, 2) == [8, 9]
        consumer.seek_to_beginning()
        assert read(consumer, 1) == [0]
        consumer.seek_to_time(NOW + 5 * DAY, partition)
        assert read(consumer, 1) == [5]
        consumer.seek_to_end(partition)
        assert consumer.position(partition) == 10
        assert consumer.poll() == []


def test_seeking_in_the_middle_of_an_iteration(servers: str) -> None:
    partition = write(servers, "leap")
    with Consumer(servers, "leap", partitions=[0]) as consumer:
        records = iter(consumer)
        assert [int(next(records).value) for _ in range(2)] == [0, 1]
        consumer.seek(partition, 7)
        assert int(next(records).value) == 7


def test_a_partition_that_is_not_assigned_cannot_be_sought(servers: str) -> None:
    partition = write(servers, "mine", 1)
    with Consumer(servers, "mine", partitions=[0]) as consumer:
        with pytest.raises(ValueError, match="mine-7 is not assigned to this consumer, which reads mine-0"):
            consumer.seek(TopicPartition("mine", 7), 0)
        with pytest.raises(ValueError, match="is not assigned"):
            consumer.pause(partition._replace(topic="other"))


def test_a_poll_for_zero_records_returns_none(servers: str) -> None:
    partition = write(servers, "none-wanted", 2)
    with Consumer(servers, "none-wanted") as consumer:
        assert consumer.poll(10, 0) == []
        assert consumer.position(partition) == 0
        assert len(consumer.poll(10)) == 2


def test_the_position_is_that_of_the_next_record(servers: str) -> None:
    partition = write(servers, "where", 4)
    with Consumer(servers, "where", partitions=[0]) as consumer:
        assert consumer.position(partition) == 0
        assert read(consumer, 2) == [0, 1]
        assert consumer.position(partition) == 2
        records = iter(consumer)
        next(records)
        assert consumer.position(partition) == 3
        assert (consumer.lag(partition), consumer.metrics().records) == (1, 3)


def test_no_records_of_a_paused_partition_are_returned(servers: str) -> None:
    zero, one = write(servers, "pause", 3, 0), write(servers, "pause", 3, 1)
    with Consumer(servers, "pause", partitions=[0, 1]) as consumer:
        first = consumer.poll(10, 1)[0]
        paused, other = (zero, one) if first.partition == 0 else (one, zero)
        consumer.pause(paused)
        assert consumer.paused == {paused}
        assert read(consumer, 3) == [0, 1, 2]  # All three records belong to the partition that is not paused.
        assert consumer.position(paused) == 1
        assert consumer.poll(0.05) == []
        consumer.resume(paused)
        consumer.pause(other)
        assert read(consumer, 2) == [1, 2]


def test_offsets_of_the_log(servers: str) -> None:
    partition, empty = write(servers, "facts"), TopicPartition("facts", 1)
    with Consumer(servers, "facts") as consumer:
        assert consumer.beginning_offsets([partition, empty]) == {partition: 0, empty: 0}
        assert consumer.end_offsets([partition, empty]) == {partition: 10, empty: 0}
        assert consumer.offsets_for_time(NOW + 3 * DAY, [partition, empty]) == {partition: 3, empty: None}


def test_the_error_of_an_offset_outside_of_the_log_contains_the_range(servers: str) -> None:
    partition = write(servers, "gone")
    with Admin(servers) as admin:
        admin.delete_records({partition: 5})
    with Consumer(servers, "gone", partitions=[0], offset=2) as consumer:
        with pytest.raises(KafkaError, match="gone-0 has no offset 2; it starts at 5 and ends before 10") as caught:
            read(consumer, 1)
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
        with pytest.raises(KafkaError, match="gone-0 has no offset 2"):
            consumer.poll(1)
        consumer.seek_to_beginning(partition)
        assert read(consumer, 1) == [5]
