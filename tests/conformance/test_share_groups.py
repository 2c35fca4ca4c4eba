"""Kafka 4.3.0's share consumers and tools, and confluent-kafka's share consumer, use share groups of HMB (KIP-932)."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import confluent_kafka
import pytest
from confluent_kafka import AcknowledgeType, ShareConsumer

from hmb.bench import peers
from tests.conformance.java_clients import QUICK_START
from tests.conformance.tools.shell_tools import ShellTools
from tests.waiting import until

pytestmark = pytest.mark.external

TOPIC, PARTITIONS, RECORDS = "work", 2, 200


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, kafka_43: Path) -> Iterator[peers.Hmb]:
    config = {"num.partitions": str(PARTITIONS), "group.share.assignment.interval.ms": "0"}
    with peers.Hmb(tmp_path_factory.mktemp("share"), config=config) as hmb:
        producer = confluent_kafka.Producer({"bootstrap.servers": hmb.bootstrap})
        for number in range(RECORDS):
            producer.produce(TOPIC, b"%d" % number, partition=number % PARTITIONS)
        assert producer.flush(30) == 0
        yield hmb


@pytest.fixture(scope="module")
def tools(broker: peers.Hmb) -> Iterator[ShellTools]:
    with ShellTools(broker.bootstrap) as started:
        yield started


@pytest.fixture
def group(tools: ShellTools) -> str:
    """Return the name of a new share group that starts to read at the oldest record of each partition."""
    name = f"workers-{uuid4()}"
    earliest = "share.auto.offset.reset=earliest,share.record.lock.duration.ms=15000"
    tools("kafka-configs", "--alter", "--entity-type", "groups", "--entity-name", name, "--add-config", earliest)
    return name


def offsets(tools: ShellTools, group: str) -> dict[int, tuple[int, int]]:
    """Return the start offset and the lag of each partition, as kafka-share-groups shows them."""
    rows = tools("kafka-share-groups", "--describe", "--group", group).rows()
    return {int(row[2]): (int(row[3]), int(row[4])) for row in rows if row[0] == group}


def test_the_console_share_consumer_accepts_all_records(tools: ShellTools, group: str) -> None:
    end = ["--max-messages", str(RECORDS), "--timeout-ms", "20000"]
    result = tools("kafka-console-share-consumer", "--topic", TOPIC, "--group", group, *end)
    assert {line for line in result.output.splitlines() if line.isdecimal()} == {str(it) for it in range(RECORDS)}
    assert all(lag == 0 for _, lag in offsets(tools, group).values())


def test_rejected_records_are_not_delivered_again(tools: ShellTools, group: str) -> None:
    end = ["--max-messages", str(RECORDS), "--timeout-ms", "20000", "--reject"]
    tools("kafka-console-share-consumer", "--topic", TOPIC, "--group", group, *end)
    assert all(lag == 0 for _, lag in offsets(tools, group).values())


def test_offsets_are_reset_and_deleted_with_the_group(tools: ShellTools, group: str) -> None:
    end = ["--max-messages", str(RECORDS), "--timeout-ms", "20000"]
    tools("kafka-console-share-consumer", "--topic", TOPIC, "--group", group, *end)
    tools("kafka-share-groups", "--reset-offsets", "--group", group, "--topic", TOPIC, "--to-earliest", "--execute")
    assert offsets(tools, group) == dict.fromkeys(range(PARTITIONS), (0, RECORDS // PARTITIONS))
    tools("kafka-console-share-consumer", "--topic", TOPIC, "--group", group, *end)
    assert group in tools("kafka-share-groups", "--list").output
    tools("kafka-share-groups", "--delete-offsets", "--group", group, "--topic", TOPIC)
    assert offsets(tools, group) == {}
    tools("kafka-share-groups", "--delete", "--group", group)
    assert group not in tools("kafka-share-groups", "--list").output


def test_the_performance_tool_reads_all_records(tools: ShellTools, group: str) -> None:
    end = ["--num-records", str(RECORDS), "--timeout", "20000"]
    rows = tools("kafka-share-consumer-perf-test", "--topic", TOPIC, "--group", group, *end).rows()
    assert int(rows[-1][-2].rstrip(",")) == RECORDS


def test_the_verifiable_share_consumer(broker: peers.Hmb, group: str) -> None:
    where = ["--bootstrap-server", broker.bootstrap, "--topic", TOPIC, "--group-id", group]
    mode = ["--acknowledgement-mode", "sync", "--max-messages", str(RECORDS), "--offset-reset-strategy", "earliest"]
    tool = "org.apache.kafka.tools.VerifiableShareConsumer"
    command = peers.java(peers.kafka_43_jars(), tool, *where, *mode, options=QUICK_START)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    counts: Counter[str] = Counter()
    for event in events:
        counts[event["name"]] += event.get("count", 0)
    assert counts["records_consumed"] == counts["offsets_acknowledged"] == RECORDS, (events, done.stderr[-1000:])


def test_the_share_consumer_of_confluent_kafka(broker: peers.Hmb, tools: ShellTools, group: str) -> None:
    """Two members release each record once, reject some of them and accept the others."""
    config = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": group,
        "share.acknowledgement.mode": "explicit",
    }
    members = [ShareConsumer(config), ShareConsumer(config)]
    for member in members:
        member.subscribe([TOPIC])
    deliveries: Counter[bytes] = Counter()
    done: set[bytes] = set()

    def process() -> bool:
        for member in members:
            for message in member.poll(0.2):
                assert message.error() is None
                value = message.value()
                deliveries[value] += 1
                if deliveries[value] == 1:
                    member.acknowledge(message, AcknowledgeType.RELEASE)
                else:
                    is_bad = int(value) % 10 == 0
                    member.acknowledge(message, AcknowledgeType.REJECT if is_bad else AcknowledgeType.ACCEPT)
                    done.add(value)
        return len(done) == RECORDS

    until(process, "every record is accepted or rejected")
    for member in members:
        assert not any((member.commit_sync(10.0) or {}).values())
        member.close()
    assert set(deliveries.values()) == {2}
    assert all(lag == 0 for _, lag in offsets(tools, group).values())
