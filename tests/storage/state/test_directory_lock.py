"""Tests of a data directory's lock: only one broker uses the directory, even if somebody renames or removes files."""

from __future__ import annotations

import errno
import fcntl
import logging
import shutil
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition
from hmb.storage.config import LogConfig
from hmb.storage.log_manager import LogManager
from hmb.storage.state.identity import DataDirectoryError
from hmb.storage.state.manifest import CLEAN_SHUTDOWN
from tests.storage.conftest import batch, delete, read_all

NAME = TopicPartition("events", 0)
OPENS = """
import sys
from pathlib import Path
from hmb.storage.log_manager import LogManager
LogManager(Path(sys.argv[1]))
"""
LOCKS_AS_KAFKA = """
import fcntl, sys
file = open(sys.argv[1], "r+")
fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("locked", flush=True)
sys.stdin.read()
"""


def python(code: str, path: Path) -> subprocess.Popen[str]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", code, str(path)], text=True, **pipes)  # type: ignore[call-overload, no-any-return]


def opened(directory: Path) -> LogManager:
    logs = LogManager(directory)
    logs.load({}, LogConfig())
    return logs


@pytest.mark.parametrize("removed", [False, True])
def test_a_removed_lock_file_admitted_a_second_broker(tmp_path: Path, removed: bool) -> None:
    logs = opened(tmp_path)
    if removed:
        (tmp_path / ".lock").unlink()
    with pytest.raises(DataDirectoryError, match="in use by another broker"):
        LogManager(tmp_path)
    errors = python(OPENS, tmp_path).communicate(timeout=30)[1]
    assert "in use by another broker" in errors
    logs.close()
    opened(tmp_path).close()


def test_the_lock_file_keeps_kafka_out_and_kafka_us(tmp_path: Path) -> None:
    logs = opened(tmp_path)
    with python(LOCKS_AS_KAFKA, tmp_path / ".lock") as kafka:
        assert "Resource temporarily unavailable" in kafka.communicate(timeout=30)[1]
    logs.close()
    with python(LOCKS_AS_KAFKA, tmp_path / ".lock") as kafka:
        assert kafka.stdout is not None and kafka.stdout.readline() == "locked\n"
        with pytest.raises(DataDirectoryError, match="in use by another broker"):
            LogManager(tmp_path)
        kafka.communicate("", timeout=30)
    opened(tmp_path).close()


def test_where_directories_cannot_be_locked_the_file_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def flock(*_: object) -> None:
        raise OSError(errno.EBADF, "Bad file descriptor")

    monkeypatch.setattr(fcntl, "flock", flock)
    logs = opened(tmp_path)
    assert "only the file .lock" in caplog.text
    assert "in use by another broker" in python(OPENS, tmp_path).communicate(timeout=30)[1]
    logs.close()


def test_a_broker_writes_nothing_into_a_directory_that_took_the_place_of_its_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    old = opened(data)
    log = old.create(NAME, LogConfig(), uuid4())
    log.append(batch(3))
    data.rename(tmp_path / "moved")
    new = opened(data)
    new.create(NAME, LogConfig(), uuid4())
    before = {path: path.stat().st_mtime_ns for path in data.rglob("*")}
    actions = (
        old.write_checkpoints,
        lambda: old.write_checkpoint(data / "cleaner-offset-checkpoint", {}),
        lambda: old.create(TopicPartition("other", 0), LogConfig(), uuid4()),
        lambda: delete(old, NAME),
    )
    for action in actions:
        with pytest.raises(OSError, match="another directory has replaced"):
            action()
    with pytest.raises(KafkaError) as refused:
        log.append(batch(1))
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert len(read_all(log)) == 3
    old.close()
    assert "the broker stops and writes nothing more into the directory" in caplog.text
    assert {path: path.stat().st_mtime_ns for path in data.rglob("*")} == before
    new.close()


def test_a_broker_whose_directory_was_removed_stops(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = tmp_path / "data"
    logs = opened(data)
    logs.create(NAME, LogConfig(), uuid4())
    shutil.rmtree(data)
    with pytest.raises(FileNotFoundError):
        logs.write_checkpoints()
    logs.close()
    assert not data.exists()
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert CLEAN_SHUTDOWN not in {path.name for path in tmp_path.iterdir()}
