"""Tests of clients that run before, during and after a restart of the broker."""

from __future__ import annotations

from pathlib import Path

import hmb


def test_clients_wait_for_a_restart(tmp_path: Path) -> None:
    broker = hmb.Broker(tmp_path).start()
    port = int(broker.bootstrap_servers.rpartition(":")[2])
    with hmb.Producer(broker.bootstrap_servers, retry_backoff=0.01) as producer:
        producer.send("t", b"before").result()
        consumer = hmb.Consumer(broker.bootstrap_servers, "t")
        records = iter(consumer)
        assert next(records).value == b"before"
        broker.stop()
        futures = [producer.send("t", b"%d" % number) for number in range(100)]
        with hmb.Broker(tmp_path, port=port):
            assert [future.result().offset for future in futures] == list(range(1, 101))
            assert [next(records).value for _ in range(100)] == [b"%d" % number for number in range(100)]
        consumer.close()
