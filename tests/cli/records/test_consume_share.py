"""Tests of share groups in `hmb consume --share` and `hmb groups describe`."""

import json

import pytest

import hmb
from hmb.client.admin import ConfigResource, ResourceType
from tests.cli.conftest import Hmb


@pytest.fixture
def group(servers: str) -> str:
    """Create the topic "work" with ten records, and a group that starts to read at the oldest record.

    The fixture returns the name of the group.
    """
    with hmb.Producer(servers) as producer:
        for number in range(10):
            producer.send("work", b"%d" % number, partition=0)
    with hmb.Admin(servers) as admin:
        admin.alter_configs(ConfigResource(ResourceType.GROUP, "w"), set={"share.auto.offset.reset": "earliest"})
    return "w"


def described(servers: str, run: Hmb) -> dict[str, int]:
    found = json.loads(run("groups", "describe", "w", "--json", "-b", servers).output)
    assert (found["type"], found["state"]) == ("share", "Empty")
    offsets: dict[str, int] = next(offset for offset in found["offsets"] if offset["partition"] == 0)
    return offsets


def test_records_are_rejected_released_and_accepted(servers: str, run: Hmb, group: str) -> None:
    where = ("consume", "work", "--share", group, "-b", servers)
    assert run(*where, "-c", "2", "--ack", "reject").output.split() == ["0", "1"]
    assert run(*where, "-c", "3", "--ack", "release").output.split() == ["2", "3", "4"]
    after = described(servers, run)
    assert (after["start_offset"], after["lag"], after["delivery_count"]) == (2, 8, 1)
    assert after["released"] == 3
    assert json.loads(run(*where, "-c", "1", "-J").output)["value"] == "2"
    assert "start_offset" in run("groups", "describe", "w", "-b", servers).output.lower().replace("-", "_")


@pytest.mark.parametrize("extra", [["--group", "g"], ["-p", "0"], ["-o", "start"], ["--tail", "1"]])
def test_share_excludes_options_that_choose_records(run: Hmb, extra: list[str]) -> None:
    assert "cannot be combined" in run("consume", "work", "--share", "w", *extra, exit_code=2).output


def test_ack_needs_share(run: Hmb) -> None:
    assert "--ack needs --share" in run("consume", "work", "--ack", "accept", exit_code=2).output
