"""Tests of `hmb offsets`: the start and end offsets of partitions, and the first offset at or after a time."""

import json

import pytest

import hmb
from hmb.client import TopicPartition
from tests.cli.conftest import Hmb


@pytest.fixture(scope="module")
def topic(servers: str) -> str:
    """Create a topic, and return its name. Partition 0 has ten records (timestamps 1000, 1001 ... ms).

    The first two of these records are deleted.
    """
    with hmb.Producer(servers) as producer:
        for number in range(10):
            producer.send("places", b"x", partition=0, timestamp=1000 + number).result()
    with hmb.Admin(servers) as admin:
        admin.delete_records({TopicPartition("places", 0): 2})
    return "places"


def test_the_ends_of_all_partitions(run: Hmb, servers: str, topic: str) -> None:
    header, zero, one, _ = run("offsets", topic, "-b", servers).stdout.splitlines()
    assert header.split() == ["topic", "partition", "log_start_offset", "log_end_offset", "span"]
    assert zero.split() == [topic, "0", "2", "10", "8"]
    assert one.split() == [topic, "1", "0", "0", "0"]
    everything = [json.loads(line) for line in run("offsets", "--json", "-b", servers).stdout.splitlines()]
    assert {"topic": topic, "partition": 0, "log_start_offset": 2, "log_end_offset": 10, "span": 8} in everything
    assert "__consumer_offsets" not in {it["topic"] for it in everything}


def test_the_offset_of_a_time(run: Hmb, servers: str, topic: str) -> None:
    times = ("1970-01-01T00:00:01.005Z", "-1m", "max-timestamp", "earliest", "-1")
    options = [option for time in times for option in ("--time", time)]
    lines = run("offsets", f"{topic}:0", *options, "--json", "-b", servers).stdout.splitlines()
    found = [json.loads(line) for line in lines]
    assert [(it["time"], it["offset"], it["timestamp"]) for it in found] == [
        (times[0], 5, 1005),
        ("-1m", None, None),
        ("max-timestamp", 9, 1009),
        ("earliest", 2, None),
        ("latest", 10, None),
    ]
    header, row = run("offsets", f"{topic}:0", "--time", "1005", "-b", servers).stdout.splitlines()
    assert header.split() == ["topic", "partition", "time", "offset", "timestamp"]
    # The option's value 1005 is in seconds, so no record is at or after this time.
    assert row.split() == [topic, "0", "1005", "-", "-"]


def test_the_end_for_readers_of_committed_records(run: Hmb, servers: str) -> None:
    at = ("open:0", "--json", "-b", servers)
    with hmb.Producer(servers, transactional_id="undecided") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("open", b"x", partition=0).result()
        assert json.loads(run("offsets", *at).stdout)["log_end_offset"] == 1
        assert json.loads(run("offsets", "--committed", *at).stdout)["last_stable_offset"] == 0
        producer.commit_transaction()
    stable = json.loads(run("offsets", "--committed", *at).stdout)["last_stable_offset"]
    assert stable == 2  # The record and the transaction marker have one offset each.


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (["nowhere"], 3, "there is no topic 'nowhere'"),
        (["places:7"], 3, "topic 'places' has no partition 7"),
        (["places:"], 2, "write TOPIC or TOPIC:0,1,2"),
        (["places", "--time", "2026-13-01"], 2, "2026-13-01 is not a date"),
        (["places", "--time", "soon"], 2, "these words are also allowed: earliest, latest, max-timestamp"),
    ],
)
def test_missing_topics_and_partitions_are_reported(
    run: Hmb, servers: str, topic: str, arguments: list[str], exit_code: int, message: str
) -> None:
    result = run("offsets", *arguments, "-b", servers, exit_code=exit_code)
    assert message in " ".join(result.stderr.split())
    assert result.stdout == ""
