"""Tests of consumers in groups: assigned partitions, commits and callbacks."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest

import hmb
from hmb import Consumer
from hmb.client import ConsumerRecord
from hmb.client.group.interface import OffsetAndMetadata
from hmb.protocol.errors import KafkaError
from hmb.protocol.topics import TopicPartition
from tests.client.group.members import GROUP_CONFIG, KINDS, group_servers, make_topic
from tests.waiting import until

each_kind = pytest.mark.parametrize("kind", KINDS)
NAMES = (f"t{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with group_servers() as servers:
        yield servers


@pytest.fixture
def topic(servers: str) -> str:
    """Create a topic with two partitions, each with ten records (0 to 9). Return its name."""
    name = next(NAMES)
    make_topic(servers, name, 2)
    produce(servers, name, range(10))
    return name


def produce(servers: str, topic: str, numbers: range) -> None:
    with hmb.Producer(servers) as producer:
        for number in numbers:
            for partition in range(2):
                producer.send(topic, b"%d" % number, partition=partition)


def reader(servers: str, topic: str, **more: Any) -> Consumer:
    settings = {"group": f"readers of {topic}", "heartbeat_interval": 0.02, "max_wait_ms": 20, **more}
    return Consumer(servers, topic, **settings)


def read(*consumers: Consumer, count: int = 20) -> list[ConsumerRecord]:
    """Poll the consumers alternately until they have returned `count` records in total. Return these records."""
    records: list[ConsumerRecord] = []

    def have_read() -> bool:
        for consumer in consumers:
            records.extend(consumer.poll(0.01))
        return len(records) >= count

    until(have_read, f"{count} records")
    return records


def places(records: list[ConsumerRecord]) -> list[tuple[int, int]]:
    return sorted((record.partition, record.offset) for record in records)


ALL = [(partition, offset) for partition in range(2) for offset in range(10)]


@each_kind
def test_a_later_member_begins_at_the_committed_offsets(servers: str, topic: str, kind: Any) -> None:
    with reader(servers, topic, **kind) as consumer:
        assert places(read(consumer)) == ALL
        assert consumer.assignment == {TopicPartition(topic, 0), TopicPartition(topic, 1)}
    produce(servers, topic, range(10, 12))
    with reader(servers, topic, **kind) as consumer:
        assert places(read(consumer, count=4)) == [(0, 10), (0, 11), (1, 10), (1, 11)]


@each_kind
def test_two_members_read_every_record_once_though_one_joins_later(servers: str, topic: str, kind: Any) -> None:
    with reader(servers, topic, **kind) as first:
        records = read(first)
        with reader(servers, topic, **kind) as second:
            until(lambda: not first.poll(0) and not second.poll(0) and second.assignment)
            produce(servers, topic, range(10, 20))
            records += read(first, second)
            assert len(first.assignment) == len(second.assignment) == 1
    assert places(records) == [(partition, offset) for partition in range(2) for offset in range(20)]


@each_kind
def test_the_callbacks_receive_partitions_and_may_commit_before_they_give_them_up(
    servers: str, topic: str, kind: Any
) -> None:
    calls: list[tuple[str, list[TopicPartition]]] = []

    def given_up(partitions: list[TopicPartition]) -> None:
        calls.append(("revoked", partitions))
        consumer.commit({partition: 3 + partition.partition for partition in partitions})

    consumer = reader(
        servers,
        topic,
        auto_commit=False,
        on_assigned=lambda partitions: calls.append(("assigned", partitions)),
        on_revoked=given_up,
        **kind,
    )
    both = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    read(consumer)
    consumer.close()
    assert [it for it in calls if it[1]] == [("assigned", both), ("revoked", both)]
    with reader(servers, topic, **kind) as consumer:
        until(lambda: consumer.poll(0) or consumer.assignment)
        assert {it.offset for it in consumer.committed().values() if it is not None} == {3, 4}


def test_without_auto_commit_only_explicit_commits_are_stored(servers: str, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    with reader(servers, topic, auto_commit=False) as consumer:
        read(consumer)
        assert consumer.committed(partition) == {partition: None}
        consumer.commit({partition: OffsetAndMetadata(4, "so far")})
        assert consumer.committed(partition) == {partition: OffsetAndMetadata(4, "so far")}
        assert consumer.position(partition) == 10
        heard: list[object] = []
        consumer.commit_async({partition: 5}, lambda offsets, error: heard.append((offsets, error)))
        until(lambda: consumer.poll(0) or heard)
        assert heard == [({partition: OffsetAndMetadata(5)}, None)]
    with reader(servers, topic) as consumer:
        assert places(read(consumer, count=15)) == ALL[5:]


def test_auto_commit_saves_the_records_of_earlier_polls(servers: str, topic: str) -> None:
    with reader(servers, topic, auto_commit_interval=0.0, max_poll_records=4) as consumer:
        records = read(consumer, count=4)

        def saved() -> int:
            records.extend(consumer.poll(0))
            return sum(it.offset for it in consumer.committed().values() if it is not None)

        until(lambda: saved() == 20)
        assert places(records) == ALL


def test_records_of_a_poll_are_not_committed_before_the_next_one(servers: str, topic: str) -> None:
    consumer = reader(servers, topic, auto_commit_interval=0.0)
    assert consumer.poll(30)
    assert not any(it.offset for it in consumer.committed().values() if it is not None)
    consumer.close()


@each_kind
def test_until_the_end_refers_to_the_assigned_partitions(servers: str, topic: str, kind: Any) -> None:
    with reader(servers, topic, until="end", **kind) as consumer:
        assert places(list(consumer)) == ALL
    with reader(servers, topic, until="end", **kind) as consumer:
        assert list(consumer) == []


def test_a_seek_holds_in_a_group_too(servers: str, topic: str) -> None:
    with reader(servers, topic) as consumer:
        read(consumer)
        consumer.seek(TopicPartition(topic, 1), 8)
        assert places(read(consumer, count=2)) == [(1, 8), (1, 9)]


def test_without_a_committed_offset_it_begins_at_its_start(servers: str, topic: str) -> None:
    with reader(servers, topic, offset=-2) as consumer:
        assert places(read(consumer, count=4)) == [(0, 8), (0, 9), (1, 8), (1, 9)]


def test_a_committed_offset_that_does_not_exist_causes_no_endless_loop(
    servers: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    partition = TopicPartition(topic, 0)
    consumer = Consumer(servers, group=f"readers of {topic}", max_wait_ms=20)
    consumer.assign([partition])
    consumer.commit({partition: 99})
    consumer.assign([partition])
    assert places(read(consumer, count=10)) == ALL[:10]
    assert len(caplog.records) == 1
    consumer.close()


def test_assigned_partitions_begin_at_the_committed_offsets(servers: str, topic: str) -> None:
    partitions = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    with Consumer(servers, group=f"readers of {topic}", max_wait_ms=20) as consumer:
        consumer.assign(partitions)
        assert places(read(consumer)) == ALL
        assert consumer.group_metadata.member_id == ""
    with Consumer(servers, group=f"readers of {topic}", max_wait_ms=20) as consumer:
        consumer.assign(partitions)
        produce(servers, topic, range(10, 11))
        assert places(read(consumer, count=2)) == [(0, 10), (1, 10)]


def test_assigned_partitions_cannot_be_committed_in_a_group_with_members(servers: str, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    with reader(servers, topic) as member, Consumer(servers, group=f"readers of {topic}") as stranger:
        read(member)
        stranger.assign({partition: 5})
        with pytest.raises(KafkaError, match="has members, and only they may commit; use another group"):
            stranger.commit()


def test_a_pattern_matches_topics_that_are_created_later(servers: str) -> None:
    name = next(NAMES)
    with Consumer(
        servers, pattern=f"{name}-.*", group=name, metadata_max_age=0.05, heartbeat_interval=0.02, max_wait_ms=20
    ) as consumer:
        consumer.poll(0)
        make_topic(servers, f"{name}-x", 2)
        produce(servers, f"{name}-x", range(10))
        assert places(read(consumer)) == ALL
        make_topic(servers, f"{name}-y", 2)
        produce(servers, f"{name}-y", range(10))
        assert {record.topic for record in read(consumer)} == {f"{name}-y"}


@each_kind
def test_another_subscription_gives_up_the_other_topics(servers: str, topic: str, kind: Any) -> None:
    other = next(NAMES)
    make_topic(servers, other, 2)
    produce(servers, other, range(10))
    with reader(servers, topic, **kind) as consumer:
        read(consumer)
        consumer.subscribe(other)
        assert {record.topic for record in read(consumer)} == {other}
        assert {it.topic for it in consumer.assignment} == {other}
        consumer.unsubscribe()
        assert consumer.assignment == frozenset()
        consumer.subscribe(topic)
        produce(servers, topic, range(10, 11))
        assert places(read(consumer, count=2)) == [(0, 10), (1, 10)]


@each_kind
def test_a_consumer_that_works_for_too_long_loses_its_partitions(
    servers: str, topic: str, kind: Any
) -> None:
    lost: list[TopicPartition] = []
    slow = reader(servers, topic, auto_commit=False, max_poll_interval=0.3, on_lost=lost.extend, **kind)
    read(slow)
    with reader(servers, topic, **kind) as other:
        until(lambda: other.poll(0) and other.assignment == {TopicPartition(topic, 0), TopicPartition(topic, 1)})
        with pytest.raises(KafkaError, match="poll more often than every"):
            slow.commit()
    until(lambda: slow.poll(0) or lost)
    assert set(lost) == {TopicPartition(topic, 0), TopicPartition(topic, 1)}
    slow.close()


def test_settings_that_cannot_work_are_refused_before_anything_is_sent() -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"assignors": ["best"]}, "unknown assignor 'best'; the assignors are range, roundrobin"),
        ({"group_protocol": "modern"}, "one of classic, consumer, not 'modern'"),
        ({"session_timeout": 3.0}, "heartbeat_interval must be above 0 and below session_timeout"),
        ({"group": ""}, "a group needs a name"),
    ]
    for settings, why in refused:
        with pytest.raises(ValueError, match=why):
            Consumer("127.0.0.1:1", "t", **{"group": "g", **settings})


def test_closing_while_the_broker_is_down_waits_at_most_for_its_timeout() -> None:
    with hmb.Broker(config=GROUP_CONFIG) as broker:
        make_topic(broker.bootstrap_servers, "t", 2)
        produce(broker.bootstrap_servers, "t", range(10))
        consumer = reader(broker.bootstrap_servers, "t", request_timeout=3600.0)
        assert places(read(consumer)) == ALL
    consumer.close(timeout=0.1)
    consumer.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer", "assign"])
def test_closing_without_a_broker_is_quick(protocol: Any) -> None:
    with hmb.Broker(config=GROUP_CONFIG) as broker:
        make_topic(broker.bootstrap_servers, "t", 2)
        produce(broker.bootstrap_servers, "t", range(10))
        if protocol == "assign":
            consumer = Consumer(broker.bootstrap_servers, group="g")
            consumer.assign({TopicPartition("t", partition): "earliest" for partition in range(2)})
        else:
            consumer = reader(broker.bootstrap_servers, "t", group_protocol=protocol)
        assert places(read(consumer)) == ALL
    started = time.monotonic()
    consumer.close()
    assert time.monotonic() - started < 3  # 0.1 s on an idle machine
