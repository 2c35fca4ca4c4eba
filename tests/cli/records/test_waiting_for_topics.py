"""Tests of `hmb consume` that is started before its topic exists."""

import signal

import pytest

from hmb.client import Admin
from tests.cli.conftest import Hmb, start

GROUPS = [[], ["-G", "{topic}-group"], ["-G", "{topic}-group", "--group-protocol", "consumer"]]


@pytest.mark.parametrize("group", GROUPS, ids=["alone", "classic", "consumer"])
def test_the_consumer_of_the_demo_waits_for_the_topic_of_its_producer(
    run: Hmb, servers: str, group: list[str]
) -> None:
    topic = f"later{len(group)}"
    process = start("consume", topic, *(word.format(topic=topic) for word in group), "-b", servers)
    assert process.stdout is not None and process.stderr is not None
    expected = f"hmb: topic '{topic}' does not exist yet; waiting for it (Ctrl-C ends, --no-wait does not wait)\n"
    assert process.stderr.readline().decode() == expected
    run("produce", topic, "-p", "0", "-b", servers, stdin="first\nsecond\n")
    assert [process.stdout.readline() for _ in range(2)] == [b"first\n", b"second\n"]
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, b"")
    assert b"hmb: " not in errors  # The command prints no message after the topic exists.


def test_the_other_topics_are_read_while_one_does_not_exist(run: Hmb, servers: str) -> None:
    run("topics", "create", "present", "-b", servers)
    process = start("consume", "present", "absent", "-b", servers)
    assert process.stdout is not None and process.stderr is not None
    assert b"'absent' does not exist yet" in process.stderr.readline()
    run("produce", "present", "-b", servers, stdin="1\n")
    assert process.stdout.readline() == b"1\n"
    run("produce", "absent", "-b", servers, stdin="2\n")
    assert process.stdout.readline() == b"2\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130


@pytest.mark.parametrize(
    "options",
    [["-e"], ["--no-wait"], ["--tail", "2"], ["-o", "5"], ["-o", "+5"], ["-o", ":9"], ["-G", "g", "-e"],
     ["-G", "g", "--no-wait"]],
)  # fmt: skip
def test_a_command_that_cannot_wait_ends_with_exit_code_3(run: Hmb, servers: str, options: list[str]) -> None:
    result = run("consume", "nowhere", *options, "-b", servers, exit_code=3)
    assert result.stderr.startswith("hmb: there is no topic 'nowhere'; ")
    with Admin(servers) as admin:
        assert "nowhere" not in {topic.name for topic in admin.list_topics()}


def test_a_time_limit_without_the_topic_is_exit_code_3(run: Hmb, servers: str) -> None:
    result = run("consume", "nowhere", "--timeout-ms", "1", "-b", servers, exit_code=3)
    waiting, error = result.stderr.splitlines()
    assert "waiting for it" in waiting
    assert error.startswith("hmb: there is no topic 'nowhere'; ")
