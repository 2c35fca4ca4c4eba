"""Tests hmb.Producer and hmb.Consumer with brokers in other processes: HMB, Kafka 4.3.0 and Kafka 0.8.2.2."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Literal

import pytest
from kafka.partitioner.default import murmur2

import hmb
from hmb.client.offsets import AtTime, FromStart
from hmb.protocol.errors import ErrorCode, KafkaError
from tests.conformance.libraries import KINDS, MAX_MESSAGE, PARTITIONS, Subject, partitions, running
from tests.waiting import until

pytestmark = pytest.mark.external

HOUR = 3_600_000
Protocol = Literal["classic", "consumer"]


@pytest.fixture(scope="module", params=list(KINDS))
def broker(request: pytest.FixtureRequest) -> Iterator[Subject]:
    yield from running(request.param)


@pytest.fixture
def topic(broker: Subject) -> str:
    return broker.topic()


@pytest.fixture
def numbers(broker: Subject, topic: str) -> str:
    """Create a topic with the values 0 to 99 in partition 0.

    The first timestamp is one hour before now, and each later timestamp is one second greater.
    """
    with hmb.Producer(broker.bootstrap, batch_size=200) as producer:
        for number in range(100):
            producer.send(topic, b"%d" % number, partition=0, timestamp=start_of(broker) + 1000 * number)
    return topic


_STARTS: dict[str, int] = {}


def start_of(broker: Subject) -> int:
    return _STARTS.setdefault(broker.kind, int(time.time() * 1000) - HOUR)


def read(broker: Subject, topic: str, **options: object) -> list[hmb.ConsumerRecord]:
    with hmb.Consumer(broker.bootstrap, topic, **{"until": "end", **options}) as consumer:  # type: ignore[arg-type]
        return list(consumer)


def values(records: list[hmb.ConsumerRecord]) -> list[int]:
    return [int(record.value or b"-1") for record in records]


# Producing


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_a_consumer_reads_the_sent_records(broker: Subject, topic: str, acks: int | str, codec: str) -> None:
    sent = [b"value %d" % number * 10 for number in range(300)]
    # With acks=0 the producer does not learn that a leader is not ready yet.
    with hmb.Producer(broker.bootstrap) as producer:
        producer.send(topic, b"first", partition=1).result()
    with hmb.Producer(broker.bootstrap, acks=acks, compression=codec, batch_size=3_000) as producer:
        deliveries = [producer.send(topic, value, b"key", partition=1) for value in sent]
        if codec == "zstd" and not broker.is_new:
            with pytest.raises(KafkaError, match="which zstd needs"):
                deliveries[0].result()
            return
    offsets = [delivery.result().offset for delivery in deliveries]
    assert offsets == ([-1] * 300 if acks == 0 else list(range(1, 301)))
    found: list[hmb.ConsumerRecord] = []
    with hmb.Consumer(broker.bootstrap, topic, offset=1, partitions=[1]) as consumer:
        until(lambda: found.extend(consumer.poll(0.1)) or len(found) == 300, "all records")
    assert [(it.partition, it.offset, it.key, it.value) for it in found] == [
        (1, offset, b"key", value) for offset, value in enumerate(sent, 1)
    ]


def test_nulls_headers_and_timestamps(broker: Subject, topic: str) -> None:
    headers = (("name", b"\x00"), ("name", None), ("", b""))
    with hmb.Producer(broker.bootstrap) as producer:
        given = producer.send(topic, None, b"", headers=headers if broker.is_new else (), timestamp=start_of(broker))
        given.result()
        if not broker.is_new:
            with pytest.raises(KafkaError, match="which record headers need"):
                producer.send(topic, b"", headers=headers).result()
    (record,) = read(broker, topic)
    assert (record.key, record.value) == (b"", None)
    assert (record.headers, record.timestamp) == ((headers, start_of(broker)) if broker.is_new else ((), -1))


def test_keys_have_the_partitions_that_java_chooses(broker: Subject, topic: str) -> None:
    """HMB's producer chooses the same partitions for keys as the Java client.

    The test compares it with kafka-python, which has the same hash function as the Java client.
    """
    keys = [b"key %d" % number for number in range(100)]
    with hmb.Producer(broker.bootstrap) as producer:
        one_by_one = [producer.send(topic, b"", key).result().partition for key in keys]
        producer.send_many(topic, [b""] * 100, keys).result()
    assert one_by_one == [(murmur2(key) & 0x7FFFFFFF) % PARTITIONS for key in keys]
    where = {key: {record.partition for record in read(broker, topic) if record.key == key} for key in keys}
    assert where == {key: {partition} for key, partition in zip(keys, one_by_one, strict=True)}


def test_many_records_are_sent_together(broker: Subject, topic: str) -> None:
    sent = [b"%d" % number for number in range(20_000)]
    with hmb.Producer(broker.bootstrap) as producer:
        ranges = producer.send_many(topic, sent, partition=2).result()
    assert sum(each.records for each in ranges) == 20_000
    assert values(read(broker, topic)) == list(range(20_000))


def test_arrow_columns_are_written_and_read_unchanged(broker: Subject, topic: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    column = pyarrow.array([b"one", None, b"three"] * 1_000, pyarrow.binary())
    with hmb.Producer(broker.bootstrap) as producer:
        producer.send_many(topic, column, partition=0).result()
    with hmb.Consumer(broker.bootstrap, topic, until="end") as consumer:
        batches = list(consumer.arrow_batches())
    assert [value for batch in batches for value in batch.column("value").to_pylist()] == column.to_pylist()


def test_a_record_that_is_too_large_for_the_broker_fails_alone(broker: Subject, topic: str) -> None:
    with hmb.Producer(broker.bootstrap, linger_ms=100) as producer:
        before, large, after = (
            producer.send(topic, value, partition=0) for value in (b"before", b"x" * (MAX_MESSAGE + 1), b"after")
        )
        with pytest.raises(KafkaError) as caught:
            large.result()
        assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
        assert {before.result().offset, after.result().offset} == {0, 1}


def test_invalid_partitions_and_topics(broker: Subject, topic: str) -> None:
    with hmb.Producer(broker.bootstrap) as producer:
        with pytest.raises(KafkaError, match=f"has no partition {PARTITIONS}"):
            producer.send(topic, b"", partition=PARTITIONS).result()
        with pytest.raises(KafkaError) as caught:
            producer.send("no/such/name", b"")
    assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


# Consuming


def test_where_to_start_and_where_to_stop(broker: Subject, numbers: str) -> None:
    only = {"partitions": [0]}
    assert values(read(broker, numbers, offset=95, **only)) == list(range(95, 100))
    assert values(read(broker, numbers, offset=-3, **only)) == [97, 98, 99]
    assert values(read(broker, numbers, offset=FromStart(98), **only)) == [98, 99]
    assert values(read(broker, numbers, offset=10, until=13, **only)) == [10, 11, 12]
    assert values(read(broker, numbers, offset="latest", **only)) == []


def test_starting_at_a_time(broker: Subject, numbers: str) -> None:
    at = start_of(broker) + 42_000
    found = values(read(broker, numbers, offset=AtTime(at), partitions=[0]))
    if broker.is_new:
        assert found == list(range(42, 100))
        assert values(read(broker, numbers, until=AtTime(at), partitions=[0])) == list(range(42))
    else:
        # Kafka 0.8.2 compares the requested time only with the time at which a segment's file was last written. It
        # returns the first offset of the segment.
        assert found in ([], list(range(100)))


def test_positions(broker: Subject, numbers: str) -> None:
    zero, one, _ = where = partitions(numbers)
    with hmb.Consumer(broker.bootstrap, numbers) as consumer:
        assert consumer.beginning_offsets(where) == dict.fromkeys(where, 0)
        assert consumer.end_offsets(where) == dict.fromkeys(where, 0) | {zero: 100}
        assert values(consumer.poll(10.0, max_records=10)) == list(range(10))
        assert (consumer.position(zero), consumer.position(one)) == (10, 0)
        consumer.seek(zero, 50)
        assert values(consumer.poll(10.0, max_records=2)) == [50, 51]
        consumer.seek_to_end(zero)
        assert consumer.position(zero) == 100
        consumer.seek_to_beginning(zero)
        assert values(consumer.poll(10.0, max_records=1)) == [0]
        if broker.is_new:
            assert consumer.offsets_for_time(start_of(broker) + 42_000, [zero, one]) == {zero: 42, one: None}


def test_records_of_paused_partitions_are_not_returned(broker: Subject, topic: str) -> None:
    zero, one, _ = partitions(topic)
    with hmb.Producer(broker.bootstrap) as producer:
        for partition in (zero, one):
            producer.send(topic, b"", partition=partition.partition).result()
    with hmb.Consumer(broker.bootstrap) as consumer:
        consumer.assign([zero, one])
        consumer.pause(zero)
        assert [record.partition for record in consumer.poll(10.0)] == [1]
        assert consumer.poll(0.1) == []
        consumer.resume(zero)
        assert [record.partition for record in consumer.poll(10.0)] == [0]


def test_the_error_names_a_missing_offset(broker: Subject, numbers: str) -> None:
    with pytest.raises(KafkaError, match="1000") as caught:
        read(broker, numbers, offset=1000, until=None, partitions=[0])
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_low_level_consumer(broker: Subject, numbers: str) -> None:
    with hmb.SimpleConsumer(broker.bootstrap) as consumer:
        fetched = consumer.fetch(numbers, 0, 10, max_bytes=1_000)
        assert fetched.high_watermark == 100 and values(list(fetched))[:2] == [10, 11]
        assert consumer.offsets_before(numbers, 0, -1, 2) == [100, 0]
        assert consumer.offsets_before(numbers, 0, -2, 2) == [0]
        with pytest.raises(KafkaError) as caught:
            consumer.fetch(numbers, 0, 101)
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


# Groups


def test_offsets_are_committed(broker: Subject, numbers: str) -> None:
    zero, one, _ = partitions(numbers)
    with hmb.Consumer(broker.bootstrap, group=f"group-of-{numbers}", auto_commit=False) as consumer:
        consumer.assign([zero, one])
        assert values(consumer.poll(30.0, max_records=10)) == list(range(10))
        consumer.commit()
        found = consumer.committed(zero, one)
        assert [each and each.offset for each in found.values()] in ([10, None], [10, 0])
    with hmb.Consumer(broker.bootstrap, group=f"group-of-{numbers}", auto_commit=False) as consumer:
        consumer.assign([zero])
        assert values(consumer.poll(30.0, max_records=1)) == [10]


def test_a_group_requires_a_broker_with_group_support(broker: Subject, numbers: str) -> None:
    if broker.is_new:
        pytest.skip("knows groups")
    with pytest.raises(KafkaError) as caught, hmb.Consumer(broker.bootstrap, numbers, group="g") as consumer:
        consumer.poll(10.0)
    assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_shares_the_partitions(broker: Subject, topic: str, protocol: Protocol) -> None:
    if not broker.is_new:
        pytest.skip("Kafka 0.8.2.2 has no groups")
    group = f"group-of-{topic}"
    with hmb.Producer(broker.bootstrap) as producer:
        for partition in range(PARTITIONS):
            producer.send_many(topic, [b"%d" % number for number in range(30)], partition=partition).result()
    members = [hmb.Consumer(broker.bootstrap, topic, group=group, group_protocol=protocol) for _ in range(2)]
    found: set[tuple[int, int]] = set()

    def is_all_read_and_shared_out() -> bool:
        for member in members:
            found.update((record.partition, record.offset) for record in member.poll(0.05))
        shares = [member.assignment for member in members]
        return all(shares) and sum(map(len, shares)) == PARTITIONS and len(found) == 30 * PARTITIONS

    until(is_all_read_and_shared_out, "everything read, and by two")
    assert members[0].assignment | members[1].assignment == set(partitions(topic))
    for member in members:
        member.close()
    with hmb.Consumer(broker.bootstrap, group=group) as consumer:
        committed = consumer.committed(*partitions(topic))
    assert {where: each and each.offset for where, each in committed.items()} == dict.fromkeys(partitions(topic), 30)
