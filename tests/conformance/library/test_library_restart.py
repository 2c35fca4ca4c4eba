"""Kills and restarts a broker while HMB's producer and consumer use it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import hmb
from hmb.bench import peers
from hmb.client import TopicPartition
from tests.conformance.libraries import KINDS, make
from tests.waiting import until

pytestmark = [pytest.mark.external, pytest.mark.slow]

RECORDS = 3_000
TOPIC = "numbers"


@pytest.mark.parametrize("kind", KINDS)
def test_clients_continue_after_a_broker_is_killed(kind: str, tmp_path: Path) -> None:
    """The consumer reads all acknowledged records.

    If the broker supports idempotence, the consumer reads each record once, and in order.
    """
    (port,) = peers.free_ports(1)
    found: list[int] = []
    with (
        make(kind, tmp_path / kind, port) as broker,
        hmb.Producer(broker.bootstrap, batch_size=500, max_request_size=1_000, request_timeout=10.0) as producer,
        hmb.Consumer(broker.bootstrap, retry_for=100.0) as consumer,
    ):
        producer.send(TOPIC, b"0", partition=0).result()
        consumer.assign([TopicPartition(TOPIC, 0)])
        deliveries = [producer.send(TOPIC, b"%d" % number, partition=0) for number in range(1, RECORDS)]
        deliveries[RECORDS // 3].result()
        broker.kill()
        back = threading.Thread(target=restart, args=(broker,))
        back.start()
        until(
            lambda: RECORDS - 1 in found or found.extend(int(it.value or b"") for it in consumer.poll(0.1)),
            "the last record",
            seconds=100.0,
        )
        back.join()
        producer.flush()
        assert [delivery.exception() for delivery in deliveries] == [None] * len(deliveries)
    assert sorted(set(found)) == list(range(RECORDS))
    if kind != "kafka082":
        assert found == list(range(RECORDS))


def restart(broker: peers.Peer) -> None:
    broker.spawn()
    broker.await_ready()
