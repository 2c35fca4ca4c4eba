"""Kafka Streams 4.3.0 counts words correctly on HMB after a kill, with the classic and the streams protocol (KIP-1071).

The application uses exactly-once processing (`exactly_once_v2`). The first instance is killed while it counts, so its
transaction stays open until it times out. The second instance restores the counts from the changelog topic. Each word
must then be counted exactly as often as it was written.
"""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import hmb
from hmb.bench import peers
from hmb.bench.peers.jars import kafka_streams_jars
from hmb.client.admin import GroupDescription
from tests.conformance.java_clients import QUICK_START, run
from tests.waiting import until

pytestmark = [pytest.mark.external, pytest.mark.slow]

PROGRAM = Path(__file__).with_name("StreamsWordCount.java")
WORDS = ("rain", "sun", "wind", "snow", "rain", "fog")
LINES = 200
CONFIG = {  # With these short times, the broker soon notices a killed instance and aborts its transaction.
    "group.streams.session.timeout.ms": "6000",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.initial.rebalance.delay.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


@contextmanager
def instance(servers: str, protocol: str) -> Iterator[subprocess.Popen[str]]:
    """Run one instance of the application, and stop it at the end."""
    arguments = (servers, "words", protocol, "exactly_once_v2")
    command = peers.java(kafka_streams_jars(), str(PROGRAM), *arguments, options=QUICK_START)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "RUNNING\n"
            yield process
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def write(producer: hmb.Producer, expected: Counter[str]) -> None:
    """Write LINES lines with three words each, and add their words to `expected`."""
    for number in range(LINES):
        line = [WORDS[(number + shift) % len(WORDS)] for shift in range(3)]
        producer.send("lines", " ".join(line).encode(), partition=number % 2)
        expected.update(line)
    producer.flush()


class Counts:
    """The newest committed count of each word in the topic `counts`."""

    def __init__(self, consumer: hmb.Consumer) -> None:
        self.consumer = consumer
        self.newest: Counter[str] = Counter()

    def read(self) -> Counter[str]:
        for record in self.consumer.poll(0.2):
            self.newest[(record.key or b"").decode()] = int(record.value or b"0")
        return self.newest


@pytest.mark.timeout(200)
@pytest.mark.parametrize("protocol", ["streams", "classic"])
def test_word_count_is_right_after_a_kill(tmp_path: Path, protocol: str) -> None:
    expected: Counter[str] = Counter()
    with peers.Hmb(tmp_path, config=CONFIG) as broker, hmb.Admin(broker.bootstrap) as admin:
        admin.create_topics([hmb.NewTopic(name, 2) for name in ("lines", "counts")])
        committed = hmb.Consumer(broker.bootstrap, "counts", isolation_level="read_committed")
        with hmb.Producer(broker.bootstrap) as producer, committed as consumer:
            counts = Counts(consumer)
            with instance(broker.bootstrap, protocol) as first:
                write(producer, expected)
                until(lambda: sum(counts.read().values()) > 0, "the first counts")
                write(producer, expected)
                first.send_signal(signal.SIGKILL)
                first.wait(30)
            with instance(broker.bootstrap, protocol):
                write(producer, expected)
                until(lambda: counts.read() == expected, "the right counts", seconds=90)
                (found,) = admin.describe_groups(["words"]).values()
                assert isinstance(found, GroupDescription)
                assert (found.type, found.state) == (protocol, "Stable")
                if protocol == "streams":
                    where = ["--bootstrap-server", broker.bootstrap, "--describe", "--group", "words", "--members"]
                    shown = run(peers.kafka_43_jars(), "org.apache.kafka.tools.streams.StreamsGroupCommand", *where)
                    assert b"ACTIVE: 0:[0,1]; 1:[0,1];" in shown
