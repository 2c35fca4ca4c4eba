"""Fixtures: a broker for all tests of Hailstorm, and topics for each test."""

from __future__ import annotations

import itertools
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import hmb
from hmb.client import NewTopic

NUMBERS = itertools.count()
ZOOKEEPER_JARS = Path(__file__).parents[2] / ".peers" / "k082" / "libs"  # Kafka 0.8 includes ZooKeeper 3.4.


@pytest.fixture(scope="session")
def servers() -> Iterator[str]:
    with hmb.Broker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def make_topic(servers: str) -> Callable[..., str]:
    """Return a function that makes a topic and fills its partitions: `make_topic([[b"sun"], [b"fog", b"sun"]])`."""

    def make(logs: Sequence[Sequence[bytes]]) -> str:
        name = f"hailstorm-{next(NUMBERS)}"
        with hmb.Admin(servers) as admin:
            admin.create_topics([NewTopic(name, len(logs))])
        produce(servers, name, logs)
        return name

    return make


def produce(servers: str, topic: str, logs: Sequence[Sequence[bytes]]) -> None:
    with hmb.Producer(servers) as producer:
        for partition, values in enumerate(logs):
            if values:
                producer.send_many(topic, list(values), partition=partition)
        producer.flush()


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a real ZooKeeper. Skip the test if its jar or a JVM is missing."""
    jars = list(ZOOKEEPER_JARS.glob("*.jar"))
    if not any("zookeeper-3" in jar.name for jar in jars) or shutil.which("java") is None:
        pytest.skip("ZooKeeper's jar comes with Kafka 0.8's: `hmb bench fetch-kafka`; it needs a JVM")
    directory = tmp_path_factory.mktemp("zookeeper")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = directory / "zoo.cfg"
    config.write_text(f"tickTime=100\ndataDir={directory}\nclientPort={port}\nclientPortAddress=127.0.0.1\n")
    classpath = ":".join(map(str, jars))
    command = ["java", "-Xmx64m", "-cp", classpath, "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config)]
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_for_port(port)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def wait_for_port(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, "ZooKeeper did not start"
            time.sleep(0.05)
