"""Tests of simulated disk faults: clients use a broker whose disk is slow, full or failing, or has damaged batches."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

import hmb


@pytest.fixture
def broker() -> Iterator[hmb.Broker]:
    with hmb.Broker(config={"log.flush.acks.all": True}) as broker:
        broker.create_topic("t")
        broker.create_topic("other")
        yield broker


def test_a_producer_waits_until_a_full_disk_has_room_again(broker: hmb.Broker) -> None:
    with hmb.Producer(broker.bootstrap_servers) as producer:
        with broker.disk.full():
            sent = producer.send("t", b"a")
            producer.send("other", b"b")
            with pytest.raises(TimeoutError):
                sent.result(timeout=0.5)
        sent.result(timeout=60)
    assert [each.value for each in broker.records("t")] == [b"a"]


def test_the_broker_accepts_records_as_soon_as_a_full_disk_has_room_again(broker: hmb.Broker) -> None:
    """The broker accepts records as soon as a simulated full disk has room again.

    Before a bug was fixed, the broker refused records for up to one more second, so the next test failed.
    """
    with broker.disk.full(), pytest.raises(hmb.KafkaError, match="KAFKA_STORAGE_ERROR"):
        broker.produce("t", "a")
    broker.produce("t", "b")
    assert [each.value for each in broker.records("t")] == [b"b"]


def test_a_full_disk_of_a_closed_broker_ends() -> None:
    with hmb.Broker() as broker:
        broker.produce("t", "a")
        fault = broker.disk.add("full")
    broker.disk.remove(fault)
    assert broker.disk.added == []


def test_a_fault_of_the_disk_selects_a_topic(broker: hmb.Broker) -> None:
    with broker.disk.failing("t"):
        broker.produce("other", "a")
        with pytest.raises(hmb.KafkaError, match="KAFKA_STORAGE_ERROR"):
            broker.produce("t", "a")


def test_a_failed_sync_is_an_error_for_the_producer(broker: hmb.Broker) -> None:
    with hmb.Producer(broker.bootstrap_servers, delivery_timeout=2) as producer, broker.disk.failing():
        sent = producer.send("t", b"a")
        assert isinstance(sent.exception(timeout=60), hmb.KafkaError | TimeoutError)
    broker.restart()
    broker.produce("t", "b")
    assert broker.records("t")[-1].value == b"b"


def test_a_slow_disk_delays_a_producer_with_acks_all(broker: hmb.Broker) -> None:
    with hmb.Producer(broker.bootstrap_servers) as producer, broker.disk.slow(0.3):
        begin = time.monotonic()
        producer.send("t", b"a").result(timeout=60)
        assert time.monotonic() - begin >= 0.6  # The write and the sync each wait for 0.3 s.


def test_a_consumer_finds_a_corrupt_batch(broker: hmb.Broker) -> None:
    broker.produce("t", "a")
    broker.produce("t", "b")
    broker.disk.corrupt("t", offset=1)
    with hmb.Consumer(broker.bootstrap_servers, "t") as consumer:
        records = iter(consumer)
        assert next(records).value == b"a"
        with pytest.raises(hmb.KafkaError, match="CORRUPT_MESSAGE"):
            next(records)
    with pytest.raises(hmb.KafkaError, match="t-0 has no batch at offset 2"):
        broker.disk.corrupt("t", offset=2)


def test_faults_that_end_in_another_order_leave_the_system_calls_alone(broker: hmb.Broker) -> None:
    calls = os.pwritev, os.fdatasync
    first, second = broker.disk.full(), broker.disk.slow(0.001)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    broker.produce("t", "a")
    second.__exit__(None, None, None)
    broker.produce("t", "b")
    with broker.disk.failing():
        pass
    assert len(broker.records("t")) == 2
    assert (os.pwritev, os.fdatasync) == calls
