"""Tests of `--json`: a command prints one JSON object in each line, and all commands use the same keys."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

import hmb
from hmb.client import TopicPartition
from tests.cli.conftest import Hmb


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    """Run a broker that has a topic, a committed offset and a changed setting. Return the broker's address."""
    broker = hmb.Broker(config={"num.partitions": "2", "log.flush.acks.all": "false"}).start()
    with hmb.Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([hmb.NewTopic("t", configs={"flush.ms": "7"})])
        admin.alter_group_offsets("g", {TopicPartition("t", 0): 0})
    yield broker.bootstrap_servers
    broker.stop()


def objects(run: Hmb, *arguments: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in run(*arguments, "--json").stdout.splitlines()]
    assert all(isinstance(line, dict) for line in lines)
    return lines


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        (["topics", "list"], 1),
        (["topics", "describe"], 1),
        (["topics", "trim", "t", "--all"], 2),
        (["groups", "list"], 1),
        (["groups", "describe"], 1),
        (["groups", "describe", "g"], 1),
        (["groups", "reset", "g", "--topic", "t", "--to-latest"], 2),
        (["configs", "describe", "--topic", "t"], 1),
        (["offsets"], 2),
        (["offsets", "t", "--time", "earliest", "--time", "latest"], 4),
        (["meta"], 1),
        (["meta", "--versions"], 1),
    ],
    ids=str,
)
def test_lists_and_descriptions_print_one_object_a_line(
    run: Hmb, broker: str, arguments: list[str], count: int
) -> None:
    assert len(objects(run, *arguments, "-b", broker)) == count


@pytest.mark.parametrize(
    "arguments",
    [
        ["topics", "list"],
        ["topics", "describe"],
        ["groups", "list"],
        ["groups", "describe"],
        ["configs", "describe", "--broker-defaults"],
        ["offsets"],
    ],
    ids=" ".join,
)
def test_an_empty_result_prints_no_line(run: Hmb, arguments: list[str]) -> None:
    with hmb.Broker() as empty:
        assert objects(run, *arguments, "-b", empty.bootstrap_servers) == []


def test_the_same_thing_has_the_same_keys_in_all_commands(run: Hmb, broker: str) -> None:
    at = ("-b", broker)
    (listed,) = objects(run, "topics", "list", *at)
    (described,) = objects(run, "topics", "describe", *at)
    (cluster,) = objects(run, "meta", *at)
    (seen,) = cluster["topics"]
    assert listed.items() <= described.items()
    assert listed.items() <= seen.items()
    for mine, theirs in zip(seen["partitions"], described["partitions"], strict=True):
        assert mine.items() <= theirs.items()
    assert seen["partitions"][0]["leader"] == cluster["brokers"][0]["broker"]
    offsets = {"log_start_offset", "log_end_offset"}
    (versions,) = objects(run, "meta", "--versions", *at)
    assert {key: versions[key] for key in ("broker", "host", "port")}.items() <= cluster["brokers"][0].items()
    assert offsets <= described["partitions"][0].keys()
    assert offsets <= objects(run, "offsets", *at)[0].keys()
    assert offsets <= objects(run, "topics", "trim", "t", "--all", "--dry-run", *at)[0].keys()
    (group,) = objects(run, "groups", "list", *at)
    (described_group,) = objects(run, "groups", "describe", *at)
    assert group.items() <= described_group.items()
    partition = {"topic", "partition", "current_offset"}
    assert partition <= described_group["offsets"][0].keys()
    reset = ("groups", "reset", "g", "--topic", "t", "--to-current")
    assert partition | {"group"} <= objects(run, *reset, *at)[0].keys()
    (setting,) = objects(run, "configs", "describe", "--topic", "t", *at)
    assert (setting["entity_type"], setting["entity_name"], setting["name"]) == ("topics", "t", "flush.ms")
    alter = ("configs", "alter", "--broker-defaults", "--add-config", "log.flush.interval.ms=7")
    assert objects(run, *alter, *at) == [{"entity_type": "brokers", "entity_name": None, "altered": True}]
