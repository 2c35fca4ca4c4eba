"""Tests of HMB's groups of the consumer protocol (KIP-848), with the tools and the broker of Kafka 4.3.0."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from hmb.bench import peers
from hmb.client import Connection
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.topics import TopicPartition
from tests.conformance import java_clients
from tests.conformance.tools.shell_tools import ShellTools
from tests.waiting import until

pytestmark = pytest.mark.external

GROUP, TOPIC, PARTITIONS, RECORDS = "readers", "events", 4, 40
SECONDS = 60.0
CONFIG = {"offsets.topic.num.partitions": "1", "group.consumer.assignment.interval.ms": "0"}


def fill(broker: peers.Peer) -> None:
    wanted = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)
    with Connection(peers.HOST, broker.port) as connection:
        connection.send(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000))
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(RECORDS):
        producer.produce(TOPIC, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(SECONDS) == 0


@contextmanager
def consumer(broker: peers.Peer, **more: Any) -> Iterator[confluent_kafka.Consumer]:
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": GROUP,
        "group.protocol": "consumer",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "client.id": "lively",
        "log_level": 0,
        **more,
    }
    opened = confluent_kafka.Consumer(settings)
    try:
        yield opened
    finally:
        opened.close()


def read(client: confluent_kafka.Consumer, count: int) -> list[int]:
    found: list[int] = []
    deadline = time.monotonic() + SECONDS
    while len(found) < count and time.monotonic() < deadline:
        found += [int(message.value()) for message in client.consume(count, 0.5) if not message.error()]
    return sorted(found)


def describe(broker: peers.Peer) -> Any:
    """Return the broker's description of the group. The description of an unknown group has no members.

    Repeat the request until the broker is the coordinator of the group, or until SECONDS have passed.
    """
    with Connection(peers.HOST, broker.port) as connection:
        deadline = time.monotonic() + SECONDS
        while True:
            connection.send(FindCoordinatorRequest(coordinator_keys=[GROUP]), 4)
            (group,) = connection.send(ConsumerGroupDescribeRequest(group_ids=[GROUP]), 1).groups
            if group.error_code in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND) or time.monotonic() > deadline:
                return group
            time.sleep(0.1)


@pytest.fixture
def broker(tmp_path: Path, kafka_43: Path) -> Iterator[peers.Hmb]:
    with peers.Hmb(tmp_path / "hmb", config=CONFIG) as hmb:
        fill(hmb)
        yield hmb


def test_kafkas_tools_describe_the_group(broker: peers.Hmb) -> None:
    with ShellTools(broker.bootstrap) as tools, consumer(broker) as client:
        client.subscribe([TOPIC])
        assert read(client, RECORDS) == list(range(RECORDS))
        client.commit(asynchronous=False)
        assert [GROUP, "Consumer", "Stable"] in [
            [row[0], row[1], row[-1]] for row in tools("kafka-consumer-groups", "--list", "--state", "--type").rows()
        ]
        members = tools("kafka-consumer-groups", "--describe", "--group", GROUP, "--members", "--verbose").output
        assert "lively" in members and f"{TOPIC}:0,1,2,3" in members
        assert "uniform" in tools("kafka-consumer-groups", "--describe", "--group", GROUP, "--state").output
        rows = tools("kafka-consumer-groups", "--describe", "--group", GROUP).rows()
        lags = {int(row[2]): row[3:6] for row in rows if row[:2] == [GROUP, TOPIC]}
        assert lags == {number: ["10", "10", "0"] for number in range(PARTITIONS)}
        assert "GroupNotEmptyException" in tools.run("kafka-consumer-groups", "--delete", "--group", GROUP).output
    with ShellTools(broker.bootstrap) as tools:
        until(lambda: describe(broker).group_state == "Empty", pause=0.1)
        to_two = ["--group", GROUP, "--topic", TOPIC, "--to-offset", "2", "--execute"]
        assert "Error" not in tools("kafka-consumer-groups", "--reset-offsets", *to_two).output
        tools("kafka-consumer-groups", "--delete", "--group", GROUP)
        assert GROUP not in tools("kafka-consumer-groups", "--list").output


def test_kafkas_console_consumer_subscribes_by_an_expression(broker: peers.Hmb) -> None:
    with ShellTools(broker.bootstrap) as tools:
        reading = ["--include", "ev.*", "--group", GROUP, "--consumer-property", "group.protocol=consumer"]
        reading += ["--from-beginning", "--max-messages", str(RECORDS), "--timeout-ms", "30000"]
        lines = [line for line in tools("kafka-console-consumer", *reading).output.splitlines() if line.isdigit()]
    assert sorted(map(int, lines)) == list(range(RECORDS))


def test_kafka_reads_the_records_of_the_group(broker: peers.Hmb) -> None:
    with consumer(broker, **{"group.instance.id": "i"}) as client:
        client.subscribe([f"^{TOPIC[:3]}.*"])
        read(client, RECORDS)
        client.commit(asynchronous=False)
        log = broker.data_dir / str(TopicPartition("__consumer_offsets", 0)) / f"{0:020d}.log"
        until(lambda: log.stat().st_size > 0)
        arguments = ["--offsets-decoder", "--files", str(log)]
        dump = java_clients.run(peers.kafka_43_jars(), "org.apache.kafka.tools.DumpLogSegments", *arguments).decode()
    for kind in (3, 5, 6, 7, 8):
        assert f'"type":"{kind}"' in dump, dump
    assert '"assignedPartitions"' in dump and '"groupId":"readers"' in dump
    assert "Error" not in dump and "Exception" not in dump


@pytest.mark.parametrize("first", ["kafka", "hmb"])
def test_a_group_moves_from_one_broker_to_the_other(tmp_path: Path, kafka_43: Path, first: str) -> None:
    """A group moves from one broker to another.

    The second broker has the same members, epochs and assignments. The client continues without noticing the change.
    """
    directory, (port,) = tmp_path / "shared", peers.free_ports(1)
    kafka: Callable[[], peers.Peer] = lambda: peers.Kafka43(directory, port=port, config=CONFIG)  # noqa: E731
    hmb: Callable[[], peers.Peer] = lambda: peers.Hmb(directory, port=port, config=CONFIG)  # noqa: E731
    # Kafka must create all topics, including __consumer_offsets, because Kafka does not open topics that HMB creates.
    if first == "hmb":
        with kafka() as broker:
            fill(broker)
            assert describe(broker).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    order = [kafka, hmb] if first == "kafka" else [hmb, kafka]
    with order[0]() as broker:
        if first == "kafka":
            fill(broker)
        with consumer(broker, **{"group.instance.id": "i"}) as client:
            client.subscribe([TOPIC])
            assert read(client, RECORDS) == list(range(RECORDS))
            client.commit(asynchronous=False)
            before = describe(broker)
            broker.kill()
            with order[1]() as other:
                until(lambda: describe(other).group_state == "Stable", pause=0.1)
                after = describe(other)
                assert [member.member_id for member in after.members] == [member.member_id for member in before.members]
                assert after.members[0].assignment == before.members[0].assignment
                assert after.group_epoch - before.group_epoch in (0, 1), "the hash of the topics is another one"
                producer = confluent_kafka.Producer({"bootstrap.servers": other.bootstrap})
                producer.produce(TOPIC, b"1000", partition=1)
                assert producer.flush(SECONDS) == 0
                assert read(client, 1) == [1000]
