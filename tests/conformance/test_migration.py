"""Tests the online migration of a group with real clients, which read while the group changes its protocol.

Two consumers use the classic protocol: kafka-python, and confluent-kafka with librdkafka. A third consumer is
confluent-kafka with the KIP-848 protocol.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from kafka import KafkaConsumer

import hmb
from hmb.bench import peers
from hmb.client import Connection
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from hmb.protocol.messages.list_groups import ListGroupsRequest
from tests.waiting import until

pytestmark = pytest.mark.external

GROUP, TOPIC, PARTITIONS, RECORDS = "readers", "events", 6, 600
CONFIG = {
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
}
LIBRDKAFKA = {
    "group.id": GROUP,
    "auto.offset.reset": "earliest",
    "auto.commit.interval.ms": 200,
    "log_level": 0,
    "topic.metadata.refresh.interval.ms": 1_000,
}
CLASSIC, CONSUMER = 0, 1  # the member types in ConsumerGroupDescribe


class Seen:
    """The record numbers that each consumer of the test has read. Several threads can use one `Seen` object."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers: dict[str, list[int]] = {}

    def add(self, reader: str, value: bytes) -> None:
        with self._lock:
            self._numbers.setdefault(reader, []).append(int(value))

    def all(self) -> set[int]:
        with self._lock:
            return {number for numbers in self._numbers.values() for number in numbers}

    def of(self, reader: str) -> int:
        """Return how many records this consumer has read."""
        with self._lock:
            return len(self._numbers.get(reader, ()))


@contextmanager
def reading(poll: Callable[[], None], close: Callable[[], None]) -> Iterator[None]:
    """Call `poll` again and again in a thread, until the block ends. Then close the consumer."""
    stopped = threading.Event()

    def run() -> None:
        while not stopped.is_set():
            poll()
        close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(60)
        assert not thread.is_alive()


@contextmanager
def librdkafka(seen: Seen, name: str, bootstrap: str, **settings: Any) -> Iterator[None]:
    client = confluent_kafka.Consumer({**LIBRDKAFKA, "bootstrap.servers": bootstrap, **settings})
    client.subscribe([TOPIC])

    def poll() -> None:
        for message in client.consume(100, 0.1):
            if not message.error():
                seen.add(name, message.value())

    with reading(poll, client.close):
        yield


@contextmanager
def kafka_python(seen: Seen, name: str, bootstrap: str) -> Iterator[None]:
    client = KafkaConsumer(
        TOPIC,
        bootstrap_servers=bootstrap,
        group_id=GROUP,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=200,
        heartbeat_interval_ms=300,
        session_timeout_ms=10_000,
    )

    def poll() -> None:
        for records in client.poll(timeout_ms=100).values():
            for record in records:
                seen.add(name, record.value)

    with reading(poll, client.close):
        yield


def member_types(broker: peers.Peer) -> list[int]:
    """Return the sorted types of the members. Return an empty list until the KIP-848 group is Stable."""
    with Connection(peers.HOST, broker.port) as connection:
        (group,) = connection.send(ConsumerGroupDescribeRequest(group_ids=[GROUP]), 1).groups
    if group.error_code != ErrorCode.NONE or group.group_state != "Stable":
        return []
    return sorted(member.member_type for member in group.members)


def kind(broker: peers.Peer) -> list[tuple[str, str]]:
    with Connection(peers.HOST, broker.port) as connection:
        groups = connection.send(ListGroupsRequest(), 5).groups
    return [(group.group_type, group.group_state) for group in groups]


class Records:
    """Produces records with increasing numbers, and waits until the consumers have read all of them."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._next = 0

    def pass_through(self, bootstrap: str) -> None:
        with hmb.Producer(bootstrap) as producer:
            for number in range(self._next, self._next + RECORDS):
                producer.send(TOPIC, b"%d" % number, partition=number % PARTITIONS)
        self._next += RECORDS
        until(lambda: self._seen.all() >= set(range(self._next)), "the consumers read all records", pause=0.05)


def test_a_group_migrates_to_the_new_protocol_and_back_while_it_reads(tmp_path: Path) -> None:
    """A group is upgraded, its broker is killed and starts again, and the group is downgraded. No record is lost."""
    (port,) = peers.free_ports(1)
    seen = Seen()
    records = Records(seen)
    fast = {"heartbeat.interval.ms": 300, "session.timeout.ms": 10_000}
    broker = peers.Hmb(tmp_path / "hmb", port=port, config=CONFIG)
    broker.start()
    try:
        with hmb.Admin(broker.bootstrap) as admin:
            admin.create_topics([hmb.NewTopic(TOPIC, PARTITIONS)])
        with (
            kafka_python(seen, "kafka-python", broker.bootstrap),
            librdkafka(seen, "librdkafka", broker.bootstrap, **fast),
        ):
            records.pass_through(broker.bootstrap)
            until(lambda: kind(broker) == [("classic", "Stable")], "a classic group", pause=0.05)
            with librdkafka(seen, "KIP-848", broker.bootstrap, **{"group.protocol": "consumer"}):
                until(lambda: member_types(broker) == [CLASSIC, CLASSIC, CONSUMER], "the upgrade", pause=0.05)
                records.pass_through(broker.bootstrap)
                assert seen.of("KIP-848") > 0
                broker.kill()
                broker = peers.Hmb(tmp_path / "hmb", port=port, config=CONFIG)
                broker.start()
                records.pass_through(broker.bootstrap)
                until(lambda: member_types(broker) == [CLASSIC, CLASSIC, CONSUMER], "the restart", pause=0.05)
            until(lambda: kind(broker) == [("classic", "Stable")], "the downgrade", pause=0.05)
            before = seen.of("kafka-python"), seen.of("librdkafka")
            records.pass_through(broker.bootstrap)
            assert seen.of("kafka-python") > before[0] and seen.of("librdkafka") > before[1]
    finally:
        broker.stop()
