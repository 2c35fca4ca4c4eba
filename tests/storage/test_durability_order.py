"""Tests of the order of system calls with acks=all, recorded by strace.

The broker writes, then syncs, and then responds. The broker also syncs the directory of a new file before it responds.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from hmb.client import Producer

PRODUCES = 6
SYSCALLS = "pwritev,pwritev2,pwrite64,fsync,fdatasync,sendto,sendmsg,sendfile,mkdir,rename"
LINE = re.compile(r"(?P<thread>\d+) +(?P<name>\w+)\((?P<rest>.*)")
DESCRIPTOR = re.compile(r"\d+<(?P<path>[^>]*)>")
SYNCS = ("fsync", "fdatasync")


class Call(NamedTuple):
    thread: str
    name: str
    path: str  # the file, directory or socket that the system call uses, as strace prints it

    @property
    def is_write(self) -> bool:
        return self.name.startswith("pwrite") and self.path.endswith(".log")

    @property
    def is_answer(self) -> bool:
        return self.name.startswith("send")


def calls(trace: Path) -> Iterator[Call]:
    """Yield the traced system calls, sorted by the time at which they ended."""
    begun: dict[str, str] = {}  # thread -> strace's text of a system call that the thread has begun but not yet ended
    for line in trace.read_text(errors="replace").splitlines():
        thread, _, rest = line.partition(" ")
        if line.endswith("<unfinished ...>"):
            begun[thread] = rest.strip()
            continue
        complete_line = f"{thread} {begun.pop(thread)}" if "resumed>" in line and thread in begun else line
        if match := LINE.match(complete_line):
            descriptor = DESCRIPTOR.match(match["rest"])
            path = descriptor["path"] if descriptor else match["rest"].split('"')[1] if '"' in match["rest"] else ""
            yield Call(match["thread"], match["name"], path)


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> list[Call]:
    """Return the system calls of a broker that creates a topic, appends with acks=all, and rolls the log."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    directory = tmp_path_factory.mktemp("traced")
    trace = directory / "trace"
    command = [strace, "-D", "-f", "-y", "-s", "0", "-e", f"trace={SYSCALLS}", "-o", str(trace)]
    hmb = str(Path(sys.executable).with_name("hmb"))
    place = ["--host", "127.0.0.1", "--port", "0", "--data-dir", str(directory / "made" / "data")]
    with subprocess.Popen(
        [*command, hmb, "broker", *place, "-X", "log.segment.bytes=1000"], stdout=subprocess.PIPE, text=True
    ) as broker:
        assert broker.stdout is not None
        first_line = broker.stdout.readline()
        try:
            if not first_line:
                pytest.skip("strace may not trace here")
            address = first_line.split()[2].rstrip(",")
            with Producer(address, acks=-1, linger_ms=0) as producer:
                for number in range(PRODUCES):
                    assert producer.send("events", bytes(400)).result(30).offset == number
        finally:
            broker.terminate()
            try:
                broker.wait(20)
            except subprocess.TimeoutExpired:
                broker.kill()
    return list(calls(trace))


@pytest.mark.external
def test_each_produce_is_written_then_synced_then_answered(traced: list[Call]) -> None:
    writes = [number for number, call in enumerate(traced) if call.is_write]
    assert len(writes) == PRODUCES
    for number in writes:
        write = traced[number]
        until_answer = _until_answer(traced[number + 1 :], write.thread)
        assert ("fdatasync", write.path) in until_answer


@pytest.mark.external
def test_a_new_file_is_in_a_synced_directory_before_the_first_answer(traced: list[Call]) -> None:
    files = dict.fromkeys(call.path for call in traced if call.is_write)
    assert len(files) > 2  # The broker wrote to files of a new topic and of rolled segments.
    for path in files:
        number = next(n for n, call in enumerate(traced) if call.is_write and call.path == path)
        until_answer = _until_answer(traced[number + 1 :], traced[number].thread)
        assert ("fsync", str(Path(path).parent)) in until_answer


@pytest.mark.external
def test_new_directories_are_synced_in_theirs_before_the_first_produce_is_answered(traced: list[Call]) -> None:
    first_write = next(n for n, call in enumerate(traced) if call.is_write)
    made = [n for n, call in enumerate(traced[:first_write]) if call.name == "mkdir"]
    partition = Path(traced[first_write].path).parent
    assert {Path(traced[n].path) for n in made} >= {partition, partition.parent, partition.parent.parent}
    end = first_write + 1 + len(_until_answer(traced[first_write + 1 :], traced[first_write].thread))
    for number in made:
        parent = str(Path(traced[number].path).parent)
        assert any(call.name in SYNCS and call.path == parent for call in traced[number + 1 : end]), parent


def _until_answer(later: list[Call], thread: str) -> list[tuple[str, str]]:
    answer = next(n for n, call in enumerate(later) if call.is_answer and call.thread == thread)
    return [(call.name, call.path) for call in later[:answer]]
