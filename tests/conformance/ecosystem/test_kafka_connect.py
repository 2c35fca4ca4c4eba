"""Two workers of Kafka Connect 4.3.0 copy a file through HMB exactly once, and go on after a kill and a restart.

The source connector writes each line of a file to a topic, in transactions (KIP-618). The sink connector writes the
topic to another file.

The test kills the worker that runs the source connector. The second worker takes over, and continues after the last
committed line. Then the test stops the second worker, and starts a third one. The third worker continues at the offsets
that the second worker has stored. At the end, the topic must contain each line exactly once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import hmb
from hmb.bench import peers
from hmb.bench.peers.broker_process import write_properties
from tests.conformance.ecosystem.service import WARNINGS_TO_LOG, Service, connect_jars
from tests.conformance.java_clients import QUICK_START
from tests.waiting import until

pytestmark = [pytest.mark.external, pytest.mark.slow]

MAIN_CLASS = "org.apache.kafka.connect.cli.ConnectDistributed"
STORAGE = ("config", "offset", "status")
LINES = 50  # the number of lines in each part of the file
WORKER = {
    "group.id": "connect",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "exactly.once.source.support": "enabled",
    "consumer.isolation.level": "read_committed",  # a setting of the sink connector's consumer
    "consumer.session.timeout.ms": "3000",
    "consumer.heartbeat.interval.ms": "500",
    "offset.flush.interval.ms": "500",
    "session.timeout.ms": "3000",
    "heartbeat.interval.ms": "500",
    "scheduled.rebalance.max.delay.ms": "0",  # Give the tasks of a killed worker to another worker at once.
    "plugin.discovery": "service_load",
    "rest.advertised.host.name": peers.HOST,
    **{f"{each}.storage.topic": f"connect-{each}" for each in STORAGE},
    **{f"{each}.storage.replication.factor": "1" for each in STORAGE},
    **{f"{each}.storage.partitions": "1" for each in STORAGE if each != "config"},
}
BROKER = {
    "group.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[peers.Hmb]:
    with peers.Hmb(tmp_path / "broker", config=BROKER) as broker:
        yield broker


class Worker(Service):
    """A worker of Kafka Connect in distributed mode."""

    def __init__(self, bootstrap: str, folder: Path, name: str) -> None:
        super().__init__(folder / f"{name}.log")
        settings = {**WORKER, "bootstrap.servers": bootstrap, "listeners": f"http://{peers.HOST}:{self.port}"}
        write_properties(folder / f"{name}.properties", settings)
        options = [*QUICK_START, WARNINGS_TO_LOG]
        self.start(peers.java(connect_jars(), MAIN_CLASS, str(folder / f"{name}.properties"), options=options))

    @property
    def id(self) -> str:
        return f"{peers.HOST}:{self.port}"

    def create(self, name: str, settings: dict[str, str]) -> None:
        """Create a connector with one task. Wait until the task runs."""

        def is_created() -> bool:
            try:
                self.call("PUT", f"/connectors/{name}/config", {"tasks.max": "1", **settings})
            except OSError:  # During a rebalance, a worker answers with the status 409.
                return False
            return True

        until(is_created, f"the connector {name}", pause=0.1)
        until(lambda: self.owner(name) is not None, f"the task of {name}", pause=0.1)

    def owner(self, name: str) -> str | None:
        """Return the id of the worker that runs the task of a connector, or None if no worker runs the task."""
        try:
            status = self.call("GET", f"/connectors/{name}/status")
        except OSError:  # The worker does not know the connector yet, or is busy with a rebalance.
            return None
        running: list[Any] = [task["worker_id"] for task in status["tasks"] if task["state"] == "RUNNING"]
        return running[0] if running else None


def append(path: Path, first: int) -> None:
    """Append LINES lines with consecutive numbers to a file. The first number is `first`."""
    with path.open("a") as file:
        file.writelines(f"line {number}\n" for number in range(first, first + LINES))


def committed(bootstrap: str) -> list[str]:
    """Return the values of all committed records in the topic "lines"."""
    consumer = hmb.Consumer(bootstrap, "lines", until="end", isolation_level="read_committed")
    return [(record.value or b"").decode() for record in consumer]


@pytest.mark.timeout(400)
def test_a_file_is_copied_exactly_once_through_a_kill_and_a_restart(tmp_path: Path, broker: peers.Hmb) -> None:
    source, sink = tmp_path / "source.txt", tmp_path / "sink.txt"

    def is_copied(parts: int) -> bool:
        lines = [f"line {number}" for number in range(parts * LINES)]
        return sink.exists() and set(lines) <= set(sink.read_text().splitlines())

    append(source, 0)
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(broker.bootstrap, tmp_path, name)) for name in ("one", "two")]
        for worker in workers:
            worker.await_answer("/connectors")
        first = workers[0]
        first.create("source", {"connector.class": "FileStreamSource", "file": str(source), "topic": "lines"})
        first.create("sink", {"connector.class": "FileStreamSink", "file": str(sink), "topics": "lines"})
        until(lambda: is_copied(1), "the first lines", pause=0.1)

        owner = first.owner("source")
        (killed,) = [worker for worker in workers if worker.id == owner]
        (other,) = [worker for worker in workers if worker is not killed]
        append(source, LINES)
        killed.kill()
        until(lambda: is_copied(2), "the lines after the kill", seconds=90, pause=0.1)
        assert other.owner("source") == other.id
        other.stop()
    append(source, 2 * LINES)
    with Worker(broker.bootstrap, tmp_path, "three"):
        until(lambda: is_copied(3), "the lines after the restart", seconds=90, pause=0.1)
    assert committed(broker.bootstrap) == [f"line {number}" for number in range(3 * LINES)]
