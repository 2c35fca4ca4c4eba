"""Tests of Ctrl-C while the broker does not respond: a single Ctrl-C is enough to end a command."""

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Hmb, start

PATIENCE = 30  # seconds; a command takes 5 s at most to leave a group or to abort a transaction


@pytest.fixture
def broker(tmp_path: Path) -> Iterator["tuple[subprocess.Popen[bytes], str]"]:
    """Run a broker in a process of its own. Return the process and its address."""
    settings = ("-X", "group.initial.rebalance.delay.ms=0", "-X", "num.partitions=1")
    process = start("broker", "--port", "0", "--data-dir", str(tmp_path), "--json", *settings)
    assert process.stdout is not None
    yield process, json.loads(process.stdout.readline())["bootstrap_servers"]
    process.send_signal(signal.SIGCONT)
    process.terminate()
    process.communicate(timeout=60)


@pytest.mark.slow
def test_ctrl_c(run: Hmb, broker: "tuple[subprocess.Popen[bytes], str]") -> None:
    """A single Ctrl-C is enough to end each command, although the broker does not respond.

    Before a bug was fixed, `hmb produce --transaction` ended only 90 s after Ctrl-C. A consumer in a group took even
    longer.
    """
    process, servers = broker
    produced = [
        start("produce", "t", *options, "-b", servers, stdin=subprocess.PIPE) for options in ([], ["--transaction"])
    ]
    for producer in produced:
        assert producer.stdin is not None
        producer.stdin.write(b"before\n")
        producer.stdin.flush()
    run("topics", "create", "t", "--if-not-exists", "-b", servers)
    assert run("consume", "t", "--from-beginning", "-c", "2", "-b", servers).stdout == "before\n" * 2
    consumers = [start("consume", "t", "--from-beginning", *group, "-b", servers) for group in ([], ["-G", "g"])]
    for consumer in consumers:
        assert consumer.stdout is not None
        assert consumer.stdout.readline() == b"before\n"
    process.send_signal(signal.SIGSTOP)
    for producer in produced:
        assert producer.stdin is not None and producer.stderr is not None
        producer.stdin.write(b"after\n")
        producer.stdin.flush()
    for command in (*produced, *consumers):
        command.send_signal(signal.SIGINT)
    for command in (*produced, *consumers):
        assert command.wait(PATIENCE) == 130
        assert command.stderr is not None
        assert b"Traceback" not in command.stderr.read()
