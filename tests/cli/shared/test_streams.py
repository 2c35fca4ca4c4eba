"""Tests of commands whose standard streams are full or closed.

If a command cannot write to its standard output, it prints an error message of one line and no traceback. If the reader
of its output closes the pipe, the command ends without a message.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, Hmb, start

FULL = Path("/dev/full")


def shell(command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["sh", "-c", f"exec {COMMAND} {command}"], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full")
@pytest.mark.parametrize("command", ["--help", "broker --help", "dump-log {log}", "topics list -b {servers}"])
def test_a_full_standard_output(servers: str, run: Hmb, tmp_path: Path, command: str) -> None:
    run("topics", "create", "t", "--if-not-exists", "-b", servers)
    log = tmp_path / f"{0:020}.log"
    log.touch()
    done = shell(command.format(servers=servers, log=log) + " >/dev/full")
    assert done.stderr == "hmb: cannot write to standard output: No space left on device\n"
    assert done.returncode == 1


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full")
def test_a_full_standard_output_ends_a_consumer(servers: str, run: Hmb) -> None:
    run("produce", "full", "-b", servers, stdin="x\n")
    done = shell(f"consume full -e --from-beginning -b {servers} >/dev/full")
    assert done.stderr == "hmb: cannot write to standard output: No space left on device\n"
    assert done.returncode == 1


def test_a_closed_standard_output(servers: str) -> None:
    for command in ("--help", f"topics list -b {servers}"):
        done = shell(f"{command} >&-")
        assert (done.returncode, done.stderr) == (1, "hmb: cannot write to standard output: Bad file descriptor\n")


def test_a_closed_standard_input_is_empty(servers: str, run: Hmb) -> None:
    run("topics", "create", "nothing", "-b", servers)
    done = shell(f"produce nothing -b {servers} <&-")
    assert (done.returncode, done.stdout) == (0, "")
    assert "0 records" in done.stderr


def test_a_closed_standard_error_does_not_reuse_a_descriptor(servers: str) -> None:
    assert shell(f"topics list -b {servers} 2>&-").returncode == 0
    assert shell(f"topics describe nowhere -b {servers} 2>&-").returncode == 3
    assert shell(f"topics describe nowhere -b {servers} 2>{os.devnull}").returncode == 3


def test_a_consumer_without_records_ends_when_its_reader_closes_the_pipe(servers: str, run: Hmb) -> None:
    """`hmb consume` exits when the reader of its output closes the pipe, even if no further record arrives.

    Before a bug was fixed, `hmb consume t --from-beginning | head -2` still waited for the next record after `head` had
    exited.
    """
    run("produce", "short", "-b", servers, stdin="1\n2\n3\n")
    consumer = start("consume", "short", "--from-beginning", "-b", servers)
    assert consumer.stdout is not None and consumer.stdout.readline() == b"1\n"
    consumer.stdout.close()
    _, errors = consumer.communicate(timeout=60)
    assert (consumer.returncode, errors) == (0, b"")


def test_output_that_ctrl_c_interrupts_is_not_written_twice() -> None:
    """Ctrl-C during the output does not repeat lines.

    Before a bug was fixed, `hmb consume` printed its last lines a second time.
    """
    program = """
import io, signal, sys
from hmb.cli.shared import streams

class Interrupted(io.FileIO):
    def write(self, data):
        super().write(data)
        raise KeyboardInterrupt

sys.stdout = io.TextIOWrapper(io.BufferedWriter(Interrupted(1, "w", closefd=False)))
try:
    streams.write_out(b"once\\n")
except KeyboardInterrupt:
    pass
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("once\n", "")


def test_a_pipe_that_does_not_block_gets_all(servers: str, run: Hmb) -> None:
    run("produce", "unblocked", "-b", servers, stdin="a line that fills pipes\n" * 20_000)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    consumer = start("consume", "unblocked", "-e", "-b", servers, stdout=writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as output:
        assert output.read() == b"a line that fills pipes\n" * 20_000
    assert consumer.wait(60) == 0
