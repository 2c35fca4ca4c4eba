"""Kafka 4.3.0's kafka-consumer-groups and similar tools list, describe, reset and delete groups of HMB."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import confluent_kafka
import pytest

from hmb.bench import peers
from hmb.units import HOUR_MS
from tests.conformance.tools.shell_tools import Result, ShellTools

pytestmark = pytest.mark.external

TOPIC, GROUP = "events", "readers"
PARTITIONS, RECORDS = 2, 10  # RECORDS is the number of records in each partition.


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, kafka_43: Path) -> Iterator[peers.Hmb]:
    config = {"group.initial.rebalance.delay.ms": "0", "num.partitions": str(PARTITIONS)}
    with peers.Hmb(tmp_path_factory.mktemp("tools"), config=config) as hmb:
        yield hmb


@pytest.fixture(scope="module")
def tools(broker: peers.Hmb) -> Iterator[ShellTools]:
    with ShellTools(broker.bootstrap) as started:
        yield started


@pytest.fixture(scope="module")
def start(broker: peers.Hmb) -> int:
    """Write ten records to each partition, ten minutes apart. Return the timestamp of the first one (ms)."""
    first = int(time.time() * 1000) - 2 * HOUR_MS
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(RECORDS):
        for partition in range(PARTITIONS):
            producer.produce(TOPIC, b"%d" % number, partition=partition, timestamp=first + number * HOUR_MS // 6)
    assert producer.flush(30) == 0
    return first


@pytest.fixture
def group(broker: peers.Hmb, start: int) -> str:
    """Create a group that has read five records of each partition and has no members now."""
    commit(broker, 5)
    return GROUP


def commit(broker: peers.Hmb, offset: int) -> None:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": GROUP})
    places = [confluent_kafka.TopicPartition(TOPIC, partition, offset) for partition in range(PARTITIONS)]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def offsets(result: Result) -> dict[int, int]:
    """Return the new offset of each partition. The tool prints lines of GROUP TOPIC PARTITION NEW-OFFSET."""
    return {int(row[2]): int(row[3]) for row in result.rows() if row[:2] == [GROUP, TOPIC]}


def described(tools: ShellTools) -> dict[int, list[str]]:
    """Return the current offset, the log end offset and the lag of each partition."""
    rows = tools("kafka-consumer-groups", "--describe", "--group", GROUP).rows()
    return {int(row[2]): row[3:6] for row in rows if row[:2] == [GROUP, TOPIC]}


def test_list_and_describe(tools: ShellTools, group: str) -> None:
    assert tools("kafka-consumer-groups", "--list").output.split() == [GROUP]
    assert [GROUP, "Empty"] in [row[:2] for row in tools("kafka-consumer-groups", "--list", "--state").rows()]
    assert described(tools) == {partition: ["5", "10", "5"] for partition in range(PARTITIONS)}
    state = tools("kafka-consumer-groups", "--describe", "--group", GROUP, "--state").output
    assert "Empty" in state
    # The tool kafka-groups itself calls System.exit.
    assert GROUP in tools.run("kafka-groups", "--list").output


RESETS = {
    "to-earliest": (["--to-earliest"], 0),
    "to-latest": (["--to-latest"], RECORDS),
    "to-offset": (["--to-offset", "7"], 7),
    "to-offset past the end": (["--to-offset", "70"], RECORDS),
    "to-current": (["--to-current"], 5),
    "shift-by": (["--shift-by", "3"], 8),
    "shift-by backwards": (["--shift-by", "-2"], 3),
    "shift-by before the start": (["--shift-by", "-20"], 0),
    "by-duration": (["--by-duration", "PT1H25M"], 4),  # The first record after that time is 80 minutes old.
}


@pytest.mark.parametrize("name", RESETS)
def test_reset(broker: peers.Hmb, tools: ShellTools, group: str, name: str) -> None:
    arguments, expected = RESETS[name]
    everywhere = dict.fromkeys(range(PARTITIONS), expected)
    reset = ["--reset-offsets", "--group", GROUP, "--topic", TOPIC, *arguments]
    assert offsets(tools("kafka-consumer-groups", *reset, "--dry-run")) == everywhere
    assert described(tools)[0][0] == "5", "a rehearsal changes nothing"
    assert offsets(tools("kafka-consumer-groups", *reset, "--execute")) == everywhere
    assert described(tools) == {each: [str(expected), "10", str(RECORDS - expected)] for each in everywhere}


def test_reset_to_datetime(tools: ShellTools, group: str, start: int) -> None:
    moment = datetime.fromtimestamp((start + HOUR_MS // 6 * 2) / 1000 - 1, UTC).strftime("%Y-%m-%dT%H:%M:%S.000")
    reset = ["--reset-offsets", "--group", GROUP, "--all-topics", "--to-datetime", moment, "--execute"]
    assert offsets(tools("kafka-consumer-groups", *reset)) == dict.fromkeys(range(PARTITIONS), 2)


def test_reset_one_partition_from_a_file(tools: ShellTools, group: str, tmp_path: Path) -> None:
    plan = ["--reset-offsets", "--group", GROUP, "--topic", f"{TOPIC}:1", "--to-offset", "2", "--dry-run", "--export"]
    exported = tools("kafka-consumer-groups", *plan).output
    assert exported.strip().splitlines()[-1] == f"{TOPIC},1,2"
    file = tmp_path / "plan.csv"
    file.write_text(exported.strip().splitlines()[-1] + "\n")
    reset = ["--reset-offsets", "--group", GROUP, "--from-file", str(file), "--execute"]
    assert offsets(tools("kafka-consumer-groups", *reset)) == {1: 2}
    assert [described(tools)[partition][0] for partition in (0, 1)] == ["5", "2"]


def test_delete_offsets_then_the_group(tools: ShellTools, group: str) -> None:
    one = ["--delete-offsets", "--group", GROUP, "--topic", f"{TOPIC}:1"]
    assert "Request succeed" in tools("kafka-consumer-groups", *one).output
    assert described(tools).get(1, ["-"])[0] == "-"
    assert "successful" in tools("kafka-consumer-groups", "--delete", "--group", GROUP).output
    assert tools("kafka-consumer-groups", "--list").output.split() == []
    again = tools.run("kafka-consumer-groups", "--delete", "--group", GROUP)
    assert "GroupIdNotFoundException" in again.output


def test_a_group_with_members_is_described_and_not_reset(broker: peers.Hmb, tools: ShellTools, start: int) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": GROUP,
            "client.id": "lively",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([TOPIC])
    while not consumer.consume(1, 0.2):
        pass
    members = tools("kafka-consumer-groups", "--describe", "--group", GROUP, "--members", "--verbose").rows()
    (member,) = (row for row in members if row[0] == GROUP)
    assert member[2:5] == ["/127.0.0.1", "lively", str(PARTITIONS)]
    assert "Stable" in tools("kafka-consumer-groups", "--describe", "--group", GROUP, "--state").output
    refused = tools.run("kafka-consumer-groups", "--reset-offsets", "--group", GROUP, "--topic", TOPIC, "--to-earliest")
    assert "inactive" in refused.output
    consumer.close()


def test_perf_tests(tools: ShellTools) -> None:
    count = ["--topic", "perf", "--num-records", "20000"]
    sent = tools("kafka-producer-perf-test", *count, "--record-size", "100", "--throughput", "-1")
    assert "20000 records sent" in sent.output
    read = tools("kafka-consumer-perf-test", *count, "--timeout", "20000")
    assert "20000," in read.rows()[-1]


def test_console_consumer_with_a_group(tools: ShellTools, start: int) -> None:
    reading = ["--topic", TOPIC, "--group", "console", "--from-beginning", "--timeout-ms", "15000"]
    first = tools("kafka-console-consumer", *reading, "--max-messages", "12")
    rest = tools("kafka-console-consumer", *reading, "--max-messages", "8")
    lines = [line for line in (first.output + rest.output).splitlines() if line.isdigit()]
    assert sorted(lines) == sorted(str(number) for number in range(RECORDS) for _ in range(PARTITIONS))
