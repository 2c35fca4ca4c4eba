"""A broker that serves its state, for tests of the commands that read the state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import hmb
from hmb.broker import BrokerServer
from hmb.monitoring.ports import HttpAddress, MonitoringPorts


@contextmanager
def served_state(data_dir: Path) -> Iterator[str]:
    """Yield the address at which a broker offers its state. The broker has the topic "orders" with three records."""
    with BrokerServer(data_dir) as broker:
        broker.context.topics.create("orders", 2)
        with hmb.Producer(broker.bootstrap_servers) as producer:
            for _ in range(3):
                producer.send("orders", b"x", partition=0)
        ports = MonitoringPorts(state=HttpAddress("127.0.0.1", 0))
        ports.start(broker)
        try:
            yield ports.urls["state"]
        finally:
            ports.stop()
