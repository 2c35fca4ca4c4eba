"""Fixtures for a running broker and for the command `hmb`. The command runs in this process or in another process."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Protocol

import pytest
from click.testing import CliRunner, Result

import hmb
from hmb.cli.main import main

COMMAND = str(Path(sys.executable).with_name("hmb"))


class Hmb(Protocol):
    def __call__(self, *arguments: str, stdin: str | bytes | BinaryIO = b"", exit_code: int = 0) -> Result: ...


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    quick = {"log.flush.acks.all": "false", "group.initial.rebalance.delay.ms": "0"}
    with hmb.Broker(config={"num.partitions": "3"} | quick) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def run() -> Hmb:
    """Return a function that runs `hmb` in this process.

    The function fails if `hmb` ends with a different exit code than expected.
    """

    def run(*arguments: str, stdin: str | bytes | BinaryIO = b"", exit_code: int = 0) -> Result:
        result = CliRunner().invoke(main, arguments, input=stdin)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == exit_code, result.output
        return result

    return run


@pytest.fixture
def mute() -> Iterator[str]:
    """Yield the address of a server that accepts connections but sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def start(*arguments: str, **options: object) -> "subprocess.Popen[bytes]":
    """Start `hmb` as a process with pipes for its output."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([COMMAND, *arguments], **(pipes | options))  # type: ignore[call-overload, no-any-return]
