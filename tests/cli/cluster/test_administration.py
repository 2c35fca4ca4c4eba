"""Tests of the options and the errors that are the same in all commands for a cluster."""

import json
from pathlib import Path

import pytest

import hmb
from hmb.client import TopicPartition
from hmb.client.admin import NewTopic
from tests.cli.conftest import Hmb, start

NOBODY = "127.0.0.1:1"
COMMANDS = [
    ["topics", "list"],
    ["topics", "describe", "t"],
    ["topics", "alter", "t", "--partitions", "2"],
    ["topics", "trim", "t", "--all"],
    ["topics", "delete", "t"],
    ["groups", "list"],
    ["groups", "describe", "g"],
    ["groups", "describe", "--all-groups", "-w", "1"],
    ["groups", "reset", "g", "--topic", "t", "--to-latest"],
    ["groups", "delete", "g"],
    ["groups", "delete-offsets", "g", "--topic", "t"],
    ["groups", "remove-members", "g", "--all"],
    ["offsets"],
    ["offsets", "t", "--time", "-1h"],
    ["meta"],
    ["meta", "--versions"],
    ["configs", "describe", "-t", "t"],
    ["configs", "alter", "--broker", "0", "--add-config", "a=b"],
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=[" ".join(arguments) for arguments in COMMANDS])
def test_without_a_broker(run: Hmb, arguments: list[str]) -> None:
    result = run(*arguments, "-b", NOBODY, exit_code=4)
    start = "start a broker with `hmb broker`, or name another address with -b"
    assert result.stderr == f"hmb: nobody listens on {NOBODY}; {start}\n"
    assert result.stdout == ""


def test_settings_of_the_client(run: Hmb, servers: str, tmp_path: Path) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text(f"bootstrap.servers={servers}\nclient.id=me\n")
    assert run("topics", "list", "--command-config", str(properties)).stdout == ""
    assert "nobody listens" in run("meta", "--command-config", str(properties), "-b", NOBODY, exit_code=4).stderr
    assert "-X request.timeout.ms=soon: the value must be a number" in (
        run("meta", "-X", "request.timeout.ms=soon", "-b", servers, exit_code=2).stderr
    )
    assert "did you mean 'client.id'?" in run("meta", "-X", "client.idd=x", "-b", servers).stderr
    assert "the path is empty" in run("meta", "--command-config", "", exit_code=2).stderr
    properties.write_text("security.protocol=SSL\nssl.truststore.location=/nowhere\n")
    refused = run("meta", "--command-config", str(properties), exit_code=2)
    assert "ssl.truststore.location=/nowhere: cannot read /nowhere" in refused.stderr


@pytest.mark.parametrize("command", ["offsets", "meta"])
def test_a_reader_that_has_seen_enough(servers: str, command: str) -> None:
    """A command ends without an error if the reader of its output closes the pipe early, as `head` does.

    The output has more than 64 KiB, so it does not fit into the buffer of the pipe.
    """
    topic = "many" * 60
    with hmb.Admin(servers) as admin:
        admin.create_topics([NewTopic(topic, 300)])
    with start(command, topic, "-b", servers) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(20) == 0


def test_a_broker_that_stops_during_a_watch(tmp_path: Path) -> None:
    broker = hmb.Broker(tmp_path).start()
    with hmb.Admin(broker.bootstrap_servers) as admin:
        admin.create_topics(["t"])
        admin.alter_group_offsets("g", {TopicPartition("t", 0): 0})
    with start("groups", "describe", "g", "--json", "-w", "0.05", "-b", broker.bootstrap_servers) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["group"] == "g"
        broker.stop()
        _, error = process.communicate(timeout=30)
    assert process.returncode == 4
    assert f"hmb: nobody listens on {broker.bootstrap_servers}" in error.decode()


def test_a_subject_can_be_an_option_as_in_kafkas_tools(run: Hmb, servers: str) -> None:
    at = ("-b", servers)
    assert run("topics", "create", "--topic", "named", *at).stdout == "created topic named\n"
    described = run("topics", "describe", "named", *at).stdout
    assert run("topics", "describe", "-t", "named", *at).stdout == described
    assert run("offsets", "--topic", "named:0", *at).stdout == run("offsets", "named:0", *at).stdout
    run("groups", "reset", "--group", "g", "--topic", "named", "--to-latest", "--create", "--execute", *at)
    assert run("groups", "describe", "-G", "g", *at).stdout == run("groups", "describe", "g", *at).stdout
    assert run("topics", "delete", "named", "-t", "other", *at, exit_code=3).stdout == "deleted topic named\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["topics", "create"], "Missing argument 'TOPIC'"),
        (["topics", "delete"], "Missing argument 'TOPIC'"),
        (["groups", "delete"], "Missing argument 'GROUP'"),
        (["groups", "reset", "--to-latest"], "Missing argument 'GROUP'"),
        (["topics", "alter", "a", "-t", "b"], "name only one topic, not a and b"),
        (["topics", "create", "-t", "a/b"], "'a/b' is not a topic name"),
    ],
)
def test_a_subject_that_is_missing_or_given_twice(run: Hmb, arguments: list[str], message: str) -> None:
    assert message in run(*arguments, "-b", NOBODY, exit_code=2).stderr
