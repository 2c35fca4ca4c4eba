"""Tests of transactions while the clock is moved forward: their timeouts, and the expiry of transactional ids."""

from __future__ import annotations

from collections.abc import Iterator

import confluent_kafka
import pytest

import hmb
from hmb.protocol.topics import TopicPartition
from hmb.testing.clock import ManualClock

PARTITION = TopicPartition("t", 0)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def broker(clock: ManualClock) -> Iterator[hmb.Broker]:
    with hmb.Broker(clock=clock) as broker:
        broker.create_topic("t", config={"retention.ms": -1})
        yield broker


@pytest.fixture
def producer(broker: hmb.Broker) -> Iterator[confluent_kafka.Producer]:
    """Yield a producer with an open transaction, which contains one record. The transaction's timeout is 60 s."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "x", "transaction.timeout.ms": 60_000}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("t", b"open")
    producer.flush(30)
    yield producer


def committed_values(broker: hmb.Broker) -> list[bytes | None]:
    """Return the values of all records that a consumer with `read_committed` reads."""
    with hmb.Consumer(broker.bootstrap_servers, "t", isolation_level="read_committed", until="end") as consumer:
        return [record.value for record in consumer]


def test_a_transaction_within_its_timeout_stays_open(
    broker: hmb.Broker, clock: ManualClock, producer: confluent_kafka.Producer
) -> None:
    clock.advance(seconds=50)
    producer.commit_transaction(30)
    assert committed_values(broker) == [b"open"]


def test_a_transaction_is_aborted_after_its_timeout(
    broker: hmb.Broker, clock: ManualClock, producer: confluent_kafka.Producer
) -> None:
    broker.produce("t", "after")
    assert broker._context.topics.log_of(PARTITION).last_stable_offset == 0
    clock.advance(minutes=2)
    assert committed_values(broker) == [b"after"]
    with pytest.raises(confluent_kafka.KafkaException):
        producer.commit_transaction(30)
    assert committed_values(broker) == [b"after"]


def test_an_abort_bears_the_time_of_the_timeout_in_a_long_advance(
    broker: hmb.Broker, clock: ManualClock, producer: confluent_kafka.Producer
) -> None:
    begun = clock.now_ms()
    clock.advance(days=6)
    (found,) = broker._context.transactions.list()
    assert found.updated - begun < 120_000  # ms


def test_a_transactional_id_expires_after_its_timeout_and_seven_days(
    broker: hmb.Broker, clock: ManualClock, producer: confluent_kafka.Producer
) -> None:
    clock.advance(days=6)
    assert [each.transactional_id for each in broker._context.transactions.list()] == ["x"]
    clock.advance(days=2)
    assert broker._context.transactions.list() == []


def test_a_log_forgets_a_producer_after_a_day(broker: hmb.Broker, clock: ManualClock) -> None:
    with hmb.Producer(broker.bootstrap_servers) as producer, hmb.Admin(broker.bootstrap_servers) as admin:
        producer.send("t", b"a").result()
        clock.advance(hours=23)
        assert len(admin.describe_producers([PARTITION])[PARTITION]) == 1  # type: ignore[arg-type]
        clock.advance(hours=2)
        assert admin.describe_producers([PARTITION])[PARTITION] == ()
        producer.send("t", b"b").result()
    assert [record.value for record in broker.records("t")] == [b"a", b"b"]
