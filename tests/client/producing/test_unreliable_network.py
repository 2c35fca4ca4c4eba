"""Tests of an idempotent producer on an unreliable network: the log contains each record once, in order."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import hmb
from hmb.client.producing.producer import Producer
from hmb.records import read_records
from tests.client.producing.unreliable_proxy import ChaosProxy, Fate

PARTITIONS = 3


@contextmanager
def broker_behind(proxy: ChaosProxy) -> Iterator[hmb.Broker]:
    config = {
        "num.partitions": str(PARTITIONS),
        "log.flush.acks.all": "false",
        "advertised.listeners": f"PLAINTEXT://{proxy.address}",
    }
    with socket.create_server(("127.0.0.1", 0)) as free:
        proxy.target = free.getsockname()[1]
    with proxy, hmb.Broker(port=proxy.target, config=config) as broker:
        yield broker


def written(broker: hmb.Broker, topic: str) -> dict[int, list[int]]:
    """Return the numbers in each partition, in the order of the log."""
    assert broker.data_dir is not None
    logs = {number: broker.data_dir / f"{topic}-{number}" / f"{0:020d}.log" for number in range(PARTITIONS)}
    return {
        number: [int(record.value or b"") for record in read_records(path.read_bytes())]
        for number, path in logs.items()
    }


@pytest.mark.parametrize("seed", range(3))
def test_each_record_is_written_once_and_in_order(seed: int) -> None:
    proxy = ChaosProxy(arriving=50, seed=seed)
    with broker_behind(proxy) as broker:
        with Producer(proxy.address, batch_size=600, linger_ms=0, retry_backoff=0.001) as producer:
            sent = [producer.send("t", b"%d" % number, partition=number % PARTITIONS) for number in range(5000)]
            for number in range(5000, 6000, 100):
                values = [b"%d" % it for it in range(number, number + 100)]
                producer.send_many("t", values, partition=0).result(60)
            places = [delivery.result(60) for delivery in sent]
        found = written(broker, "t")
    expected = {number: list(range(number, 5000, PARTITIONS)) for number in range(PARTITIONS)}
    expected[0] += range(5000, 6000)
    assert found == expected
    told = [(number % PARTITIONS, place.offset) for number, place in enumerate(places) if place.offset >= 0]
    assert told == [(n % PARTITIONS, n // PARTITIONS) for n, place in enumerate(places) if place.offset >= 0]
    assert proxy.seen == set(Fate)


@pytest.mark.parametrize("seed", range(3))
def test_failed_records_are_not_written_twice_or_after_later_ones(seed: int) -> None:
    proxy = ChaosProxy(arriving=5, seed=seed)
    with broker_behind(proxy) as broker:
        proxy.passes_all = True
        with Producer(proxy.address) as producer:
            producer.send("t", b"0", partition=0).result(60)
        proxy.passes_all = False
        with Producer(
            proxy.address, batch_size=300, linger_ms=0, retry_backoff=0.001, delivery_timeout=0.2, request_timeout=5
        ) as producer:
            sent = [producer.send("t", b"%d" % number, partition=number % PARTITIONS) for number in range(1, 1000)]
            producer.flush(60)
        found = written(broker, "t")
    delivered = {number for number, delivery in enumerate(sent, 1) if delivery.exception(0) is None}
    assert 0 < len(delivered) < len(sent)
    for partition, numbers in found.items():
        assert numbers == sorted(set(numbers))  # Each number is written once, and in order.
        assert delivered.intersection(range(partition, 1000, PARTITIONS)) <= set(numbers)
