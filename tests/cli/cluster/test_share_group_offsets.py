"""Tests of `hmb groups` for share groups: reset, delete and delete-offsets change their start offsets."""

import itertools
import json
from pathlib import Path

import pytest

import hmb
from hmb.client import TopicPartition
from hmb.client.admin import Admin, ConfigResource, ResourceType
from tests.cli.conftest import Hmb

COUNT = itertools.count()


@pytest.fixture
def topic(servers: str) -> str:
    """Create a topic, and return its name. Partition 0 has ten records, with the timestamps 1000, 1001 ... 1009 ms."""
    name = f"queue-{next(COUNT)}"
    with hmb.Producer(servers) as producer:
        for number in range(10):
            producer.send(name, b"%d" % number, partition=0, timestamp=1000 + number)
    return name


@pytest.fixture
def group(servers: str, run: Hmb, topic: str) -> str:
    """Return the name of a share group. Its only member has accepted the first four records of the topic, and left."""
    name = f"share-{next(COUNT)}"
    with Admin(servers) as admin:
        admin.alter_configs(ConfigResource(ResourceType.GROUP, name), set={"share.auto.offset.reset": "earliest"})
    run("consume", topic, "--share", name, "-c", "4", "-b", servers)
    assert start_offset(servers, name, topic) == 4
    return name


def start_offset(servers: str, group: str, topic: str) -> int | None:
    with Admin(servers) as admin:
        return admin.list_share_offsets(group)[TopicPartition(topic, 0)].start_offset


@pytest.mark.parametrize(
    ("options", "new_offset"),
    [
        (["--to-earliest"], 0),
        (["--to-latest"], 10),
        (["--to-offset", "7"], 7),
        (["--to-datetime", "1970-01-01T00:00:01.003"], 3),
        (["--by-duration", "P1D"], 10),
    ],
)
def test_start_offsets_are_planned_and_then_set(
    run: Hmb, servers: str, topic: str, group: str, options: list[str], new_offset: int
) -> None:
    reset = ("groups", "reset", group, "--topic", f"{topic}:0", *options, "-b", servers)
    (line,) = run(*reset, "--json").stdout.splitlines()
    planned = {"group": group, "topic": topic, "partition": 0, "current_offset": 4, "new_offset": new_offset}
    assert json.loads(line) == planned | {"executed": False}
    assert start_offset(servers, group, topic) == 4
    assert "1 offset set" in run(*reset, "--execute").stderr
    assert start_offset(servers, group, topic) == new_offset


def test_accepted_records_are_delivered_again(run: Hmb, servers: str, topic: str, group: str) -> None:
    run("groups", "reset", group, "--all-topics", "--to-earliest", "--execute", "-b", servers)
    assert run("consume", topic, "--share", group, "-c", "2", "-b", servers).stdout.split() == ["0", "1"]


def test_an_exported_plan_is_imported(run: Hmb, servers: str, topic: str, group: str, tmp_path: Path) -> None:
    reset = ("groups", "reset", group, "-b", servers)
    plan = tmp_path / "plan.csv"
    plan.write_text(run(*reset, "--topic", f"{topic}:0", "--to-offset", "99", "--export").stdout)
    assert plan.read_text() == f"{topic},0,10\n"
    run(*reset, "--from-file", str(plan), "--execute")
    assert start_offset(servers, group, topic) == 10


@pytest.mark.parametrize("options", [["--to-current"], ["--shift-by", "-2"]])
def test_options_that_need_committed_offsets_are_refused(
    run: Hmb, servers: str, topic: str, group: str, options: list[str]
) -> None:
    reset = ("groups", "reset", group, "--all-topics", *options, "--execute", "-b", servers)
    (error,) = run(*reset, exit_code=1).stderr.splitlines()
    assert f"{options[0]} needs committed offsets, but group {group!r} is a share group" in error
    assert start_offset(servers, group, topic) == 4


def test_a_group_with_members_is_neither_reset_nor_deleted(run: Hmb, servers: str, topic: str, group: str) -> None:
    reset = ("groups", "reset", group, "--topic", f"{topic}:0", "--to-latest", "-b", servers)
    with hmb.ShareConsumer(servers, topic, group=group) as consumer:
        while not consumer.poll(0.1):
            pass
        assert "--execute is refused until they have stopped" in run(*reset).stderr
        (error,) = run(*reset, "--execute", exit_code=1).stderr.splitlines()
        assert "with 1 member: stop its consumers first; nothing was changed" in error
        (error,) = run("groups", "delete", group, "-b", servers, exit_code=1).stderr.splitlines()
        assert f"group {group!r} has members: stop them first" in error
        (error,) = run("groups", "remove-members", group, "--all", "-b", servers, exit_code=1).stderr.splitlines()
        assert "is a share group, and no API removes its members: stop its clients" in error
        delete_offsets = ("groups", "delete-offsets", group, "--topic", topic, "-b", servers)
        assert "NON_EMPTY_GROUP" in run(*delete_offsets, exit_code=1).stderr


def test_a_share_group_is_deleted_with_its_offsets(run: Hmb, servers: str, topic: str, group: str) -> None:
    assert run("groups", "delete", group, "-b", servers).stdout == f"deleted group {group}\n"
    assert group not in run("groups", "list", "-b", servers).stdout
    run("consume", topic, "--share", group, "-c", "1", "-b", servers)
    assert start_offset(servers, group, topic) == 1


def test_start_offsets_are_deleted_for_a_whole_topic(run: Hmb, servers: str, topic: str, group: str) -> None:
    delete = ("groups", "delete-offsets", group, "-b", servers, "--topic")
    assert "deleted for whole topics" in run(*delete, f"{topic}:0", exit_code=1).stderr
    assert start_offset(servers, group, topic) == 4
    header, *rows = run(*delete, topic).stdout.splitlines()
    assert header.split() == ["topic", "partition", "deleted_offset"]
    assert rows[0].split() == [topic, "0", "4"]
    assert "has no start offsets in" in run(*delete, topic, exit_code=1).stderr
    run("consume", topic, "--share", group, "-c", "1", "-b", servers)
    assert start_offset(servers, group, topic) == 1
