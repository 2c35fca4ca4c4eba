"""Tests of `hmb consume -G`: the committed offset is always the offset after the last printed record."""

import os
import signal
import subprocess
from collections.abc import Iterator
from itertools import count

import pytest

import hmb
from hmb.client import Consumer, TopicPartition
from tests.cli.conftest import Hmb, start

GROUPS = (f"group{number}" for number in count())
RECORDS = 10_000


@pytest.fixture(scope="module")
def shared() -> Iterator[str]:
    """Run a broker without an initial rebalance delay. Its topic `shared` has 10,000 records."""
    at_once = {"group.initial.rebalance.delay.ms": "0", "group.consumer.min.heartbeat.interval.ms": "100"}
    at_once["group.consumer.heartbeat.interval.ms"] = "100"
    with hmb.Broker(config=at_once) as broker:
        with hmb.Producer(broker.bootstrap_servers) as producer:
            producer.send_many("shared", [b"%d" % number for number in range(RECORDS)])
        yield broker.bootstrap_servers


@pytest.fixture
def group() -> str:
    return next(GROUPS)


def committed(servers: str, group: str) -> int | None:
    partition = TopicPartition("shared", 0)
    with Consumer(servers, group=group) as consumer:
        found = consumer.committed(partition)[partition]
    return None if found is None else found.offset


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_continues_at_its_committed_offset(run: Hmb, shared: str, group: str, protocol: str) -> None:
    consume = ("consume", "shared", "-G", group, "--group-protocol", protocol, "-b", shared)
    assert run(*consume, "-o", "start", "-c", "3").stdout == "0\n1\n2\n"
    assert run(*consume, "-o", "start", "-c", "2").stdout == "3\n4\n"
    assert run(*consume, "-c", "1", "--filter-value", "9").stdout == "9\n"
    assert run(*consume, "-c", "2", "-X", "enable.auto.commit=false").stdout == "10\n11\n"
    assert run(*consume, "-e", "-o", "stored").stdout == "".join(f"{number}\n" for number in range(10, RECORDS))
    assert committed(shared, group) == RECORDS


def test_the_end_for_a_group(run: Hmb, shared: str, group: str) -> None:
    consume = ("consume", "shared", "-G", group, "-e", "-b", shared)
    assert run(*consume, "-o", "stored", "--from-beginning", exit_code=2).stdout == ""
    assert run(*consume).stdout == "".join(f"{number}\n" for number in range(RECORDS))
    assert run(*consume, "-o", "stored").stdout == ""


def test_the_start_of_a_group_without_committed_offsets(run: Hmb, shared: str, group: str) -> None:
    assert run("consume", "shared", "-G", group, "-b", shared, "--timeout-ms", "1").stdout == ""
    consume = ("consume", "shared", "-b", shared, "-c", "1")
    assert run(*consume, "-G", f"{group}-a", "--tail", "2").stdout == "9998\n"
    assert run(*consume, "-G", f"{group}-b", "-o", "17", "--assignor", "sticky").stdout == "17\n"
    assert run(*consume, "-X", f"group.id={group}-c", "--from-beginning", "--static", "me").stdout == "0\n"
    assert committed(shared, f"{group}-c") == 1


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_printed_records_are_committed_at_the_stop(shared: str, group: str, stop: signal.Signals) -> None:
    options = ("--from-beginning", "-v")
    process = start("consume", "shared", "-G", group, *options, "-b", shared, stdout=subprocess.DEVNULL)
    assert process.stderr is not None
    assert process.stderr.readline() == b"% Reached end of topic shared [0] at offset 10000\n"
    process.send_signal(stop)
    assert process.wait(60) == 130
    assert process.stderr.read() == b""
    assert committed(shared, group) == RECORDS


def test_records_that_could_not_be_printed_are_not_committed(shared: str, group: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = start("consume", "shared", "-G", group, "--from-beginning", "-b", shared, stdout=writer)
    os.close(writer)
    assert process.communicate(timeout=60)[1] == b""
    assert process.returncode == 0
    assert committed(shared, group) is None


def test_two_members_share(run: Hmb, shared: str, group: str) -> None:
    run("topics", "create", "halves", "--partitions", "2", "-b", shared)
    members = [start("consume", "halves", "-G", group, "--from-beginning", "-b", shared) for _ in range(2)]
    outputs = [member.stdout for member in members]
    with hmb.Admin(shared) as admin:
        while True:  # Repeat until each member has one partition.
            found = admin.describe_groups([group])[group]
            if not isinstance(found, Exception) and sorted(len(it.assignment) for it in found.members) == [1, 1]:
                break
    with hmb.Producer(shared) as producer:
        for number in range(2):
            producer.send("halves", b"%d" % number, partition=number)
    assert sorted(output.readline() for output in outputs if output) == [b"0\n", b"1\n"]
    for member in members:
        member.send_signal(signal.SIGINT)
        assert (member.wait(60), member.stdout and member.stdout.read()) == (130, b"")
