"""HMB's commands and Kafka's tools report the same lags, offsets and results of a reset for the same broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import hmb
from hmb.bench import peers
from hmb.cli.main import main
from hmb.client import TopicPartition
from hmb.client.admin import Admin, NewTopic
from hmb.units import HOUR_MS
from tests.conformance.tools.shell_tools import ShellTools

pytestmark = [pytest.mark.external, pytest.mark.slow]

START = 1_700_000_000_000  # 2023-11-14T22:13:20Z
RESETS = [
    ["--to-earliest"],
    ["--to-latest"],
    ["--to-current"],
    ["--to-offset", "7"],
    ["--to-offset", "99"],
    ["--shift-by", "-2"],
    ["--shift-by", "3"],
    ["--shift-by", "-99"],
    ["--to-datetime", "2023-11-15T01:13:20.000"],
    ["--to-datetime", "2038-01-01T00:00:00.000"],
    ["--by-duration", "P1D"],
]


@pytest.fixture(scope="module", params=["hmb", "kafka43"])
def servers(request: pytest.FixtureRequest, kafka_43: Path) -> Iterator[str]:
    """Start a broker with records in topic t, and a group that has read some of them.

    Partition 0 has ten records, an hour apart, and the first two are deleted. Partition 1 has five records.
    """
    kind: type[peers.Peer] = {"hmb": peers.Hmb, "kafka43": peers.Kafka43}[request.param]
    with kind() as peer:
        with Admin(peer.bootstrap) as admin, hmb.Producer(peer.bootstrap) as producer:
            admin.create_topics([NewTopic("t", 2, 1, {"retention.ms": "-1"})])
            for partition, count in ((0, 10), (1, 5)):
                for number in range(count):
                    producer.send("t", b"x", partition=partition, timestamp=START + number * HOUR_MS).result()
            admin.delete_records({TopicPartition("t", 0): 2})
            admin.alter_group_offsets("g", {TopicPartition("t", 0): 6, TopicPartition("t", 1): 4})
        yield peer.bootstrap


@pytest.fixture(scope="module")
def tools(servers: str) -> Iterator[ShellTools]:
    with ShellTools(servers) as tools:
        yield tools


def run(servers: str, *arguments: str) -> str:
    result = CliRunner().invoke(main, [*arguments, "-b", servers])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("way", RESETS, ids=["".join(way) for way in RESETS])
def test_a_reset_has_the_same_result(servers: str, tools: ShellTools, way: list[str]) -> None:
    where = ("--topic", "t", *way, "--dry-run", "--export")
    theirs = tools("kafka-consumer-groups", "--reset-offsets", "--group", "g", *where).output
    ours = run(servers, "groups", "reset", "g", *where)
    planned = [line.replace('"', "") for line in theirs.splitlines() if line.startswith(("t,", '"t"'))]
    assert sorted(ours.splitlines()) == sorted(planned)


def test_plans_are_exchanged(servers: str, tools: ShellTools, tmp_path: Path) -> None:
    plan = tmp_path / "plan.csv"
    plan.write_text(run(servers, "groups", "reset", "g", "--topic", "t", "--to-offset", "3", "--export"))
    tools("kafka-consumer-groups", "--reset-offsets", "--group", "g", "--from-file", str(plan), "--execute")
    described = json.loads(run(servers, "groups", "describe", "g", "--json"))
    assert [it["current_offset"] for it in described["offsets"]] == [3, 3]
    back = tools(
        "kafka-consumer-groups", "--reset-offsets", "--group", "g", "--all-topics", "--shift-by", "1", "--dry-run",
        "--export",
    )  # fmt: skip
    plan.write_text(back.output)
    run(servers, "groups", "reset", "g", "--from-file", str(plan), "--execute")
    described = json.loads(run(servers, "groups", "describe", "g", "--json"))
    assert [it["current_offset"] for it in described["offsets"]] == [4, 4]
    run(servers, "groups", "reset", "g", "--topic", "t:0", "--to-offset", "6", "--execute")


def test_lags_are_the_same(servers: str, tools: ShellTools) -> None:
    theirs = tools("kafka-consumer-groups", "--describe", "--group", "g").rows()
    ours = json.loads(run(servers, "groups", "describe", "g", "--json"))["offsets"]
    shown = [[str(it[name]) for name in ("current_offset", "log_end_offset", "lag")] for it in ours]
    assert shown == sorted((row[3:6] for row in theirs if row[0] == "g"), key=lambda row: -int(row[1]))


@pytest.mark.parametrize("time", ["earliest", "latest", "max-timestamp", "-1", "-2", "-3", str(START + 3 * HOUR_MS)])
def test_offsets_are_the_same(servers: str, tools: ShellTools, time: str) -> None:
    theirs = tools("kafka-get-offsets", "--topic", "t", "--time", time).output.split()
    ours = [json.loads(line) for line in run(servers, "offsets", "t", "--time", time, "--json").splitlines()]
    assert sorted(theirs) == [f"{it['topic']}:{it['partition']}:{it['offset']}" for it in ours]


def test_settings_are_the_same(servers: str, tools: ShellTools) -> None:
    theirs = tools("kafka-configs", "--describe", "--all", "--entity-type", "topics", "--entity-name", "t").rows()
    lines = run(servers, "configs", "describe", "-t", "t", "--all", "--json").splitlines()
    values = dict(row[0].split("=", 1) for row in theirs if "=" in row[0])
    assert {it["name"]: it["value"] for it in map(json.loads, lines)} == values
