"""Tests of a log's syncs: if a sync fails or leaves out a new file, the next sync does the missing work."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.files.together import release
from hmb.storage.log import Log
from hmb.units import now_ms
from tests.storage.conftest import LogMaker, batch
from tests.storage.transactions import ABORT, Writer


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list. Each sync adds the inode of the synced file or directory, except for .log files, to this list."""
    inodes: list[int] = []

    def note(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().suffix != ".log":
            inodes.append(os.fstat(descriptor).st_ino)

    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, note)
    return inodes


def flush_without_descriptors(log: Log, monkeypatch: pytest.MonkeyPatch, wanted: Callable[[str], bool]) -> None:
    open_ = os.open

    def fail(path: str | Path, *rest: int) -> int:
        if wanted(str(path)):
            raise OSError(errno.EMFILE, "Too many open files")
        return open_(path, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", fail)
        with pytest.raises(KafkaError, match="Too many open files") as error:
            log.flush()
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def is_log(path: str) -> bool:
    return path.endswith(".log")


def is_directory(path: str) -> bool:
    return Path(path).is_dir()


@pytest.mark.parametrize("wanted", [is_log, is_directory])
def test_after_a_lack_of_descriptors_the_log_accepts_records_and_syncs_its_directory(
    open_log: LogMaker, monkeypatch: pytest.MonkeyPatch, synced: list[int], wanted: Callable[[str], bool]
) -> None:
    log = open_log()
    log.append(batch(1))
    release(log.segments[0].files)
    synced.clear()
    flush_without_descriptors(log, monkeypatch, wanted)
    log.append(batch(1))
    log.flush()
    assert log.recovery_point == 2
    directories = [log.directory.stat().st_ino, log.directory.parent.stat().st_ino]
    assert [each for each in synced if each in directories] == directories  # A thread of an earlier test may sync, too.


def test_a_transaction_index_is_synced_after_a_lack_of_descriptors(
    open_log: LogMaker, monkeypatch: pytest.MonkeyPatch, synced: list[int]
) -> None:
    log = open_log()
    writer = Writer(log, 7)
    # With a much older timestamp, the log would begin a new segment for the transaction marker.
    writer.write(first_timestamp=now_ms())
    log.flush()
    writer.end(ABORT)
    synced.clear()
    flush_without_descriptors(log, monkeypatch, is_directory)
    log.flush()
    index = log.segments[0].transaction_index.path.stat().st_ino
    assert synced == [index, log.directory.stat().st_ino, log.directory.parent.stat().st_ino]


def test_the_name_of_a_file_created_during_a_sync_is_synced_by_the_next_one(
    open_log: LogMaker, monkeypatch: pytest.MonkeyPatch, synced: list[int]
) -> None:
    """If the log creates a file during a sync, the next sync also syncs the log's directory.

    In this test, an aborted transaction creates a transaction index. If the directory is not synced, a power cut can
    remove this new file.
    """
    log = open_log()
    writer = Writer(log, 7)
    writer.write(first_timestamp=now_ms())
    fdatasync, left = os.fdatasync, [writer]

    def abort_meanwhile(descriptor: int) -> None:
        fdatasync(descriptor)
        if left:
            left.pop().end(ABORT)

    monkeypatch.setattr(os, "fdatasync", abort_meanwhile)
    log.flush()
    assert (log.log_end_offset, log.recovery_point) == (2, 1)
    synced.clear()
    log.flush()
    assert log.directory.stat().st_ino in synced


@pytest.mark.parametrize(("flush_messages", "recovery_points"), [(1, [1, 2, 3, 4]), (3, [0, 0, 3, 3])])
def test_flush_messages_synced_one_record_too_late(
    open_log: LogMaker, flush_messages: int, recovery_points: list[int]
) -> None:
    log = open_log(flush_messages=flush_messages)
    found = []
    for _ in recovery_points:
        log.append(batch(1))
        found.append(log.recovery_point)
    assert found == recovery_points
