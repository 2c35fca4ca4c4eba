"""Tests of the disk space that the broker reserves for its own writes.

While the disk is full, the broker refuses the records of producers.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition
from hmb.records import EndTransactionMarker
from hmb.storage.cleanup import deletion
from hmb.storage.config import LogConfig
from hmb.storage.files.disk_reserve import LARGEST, DiskReserve
from hmb.storage.log import Log
from hmb.storage.log_manager import LogManager
from hmb.storage.state.offset_checkpoints import START_OFFSETS
from tests.storage.conftest import batch, read_all
from tests.storage.transactions import COMMIT

NAME = TopicPartition("events", 0)
CONFIG = LogConfig(segment_bytes=100)
FULL = OSError(errno.ENOSPC, "No space left on device")
SetRoom = Callable[[int], None]


@pytest.fixture
def set_room(monkeypatch: pytest.MonkeyPatch) -> SetRoom:
    """Return a function that sets the free space, in bytes, of a simulated disk of 1 GB."""

    def set_room(room: int) -> None:
        disk = SimpleNamespace(f_blocks=1 << 18, f_bavail=room >> 12, f_frsize=1 << 12)
        monkeypatch.setattr(os, "statvfs", lambda _: disk)

    set_room(1 << 30)
    return set_room


def full(*_: object, **__: object) -> None:
    raise FULL


def opened(directory: Path) -> LogManager:
    logs = LogManager(directory)
    logs.load({}, CONFIG)
    return logs


def blocks(path: Path) -> int:
    return path.stat().st_blocks * 512


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT])
def test_the_reserve_is_released_on_a_full_disk_and_restored_later(
    tmp_path: Path, set_room: SetRoom, error: int
) -> None:
    reserve, path = DiskReserve(tmp_path), tmp_path / ".reserve"
    assert reserve.is_used
    reserve.fill()
    assert (reserve.is_used, blocks(path) >= LARGEST) == (False, True)
    assert not reserve.use(OSError(errno.EIO, "Input/output error"))
    assert not reserve.is_used
    assert reserve.use(OSError(error, "full"))
    assert (reserve.is_used, path.exists()) == (True, False)
    set_room(2 * LARGEST - 1)
    reserve.fill()
    assert (reserve.is_used, path.exists()) == (True, False)
    set_room(2 * LARGEST)
    reserve.fill()
    assert (reserve.is_used, blocks(path) >= LARGEST) == (False, True)


def test_an_existing_reserve_needs_no_further_space(tmp_path: Path, set_room: SetRoom) -> None:
    DiskReserve(tmp_path).fill()
    set_room(0)
    reserve = DiskReserve(tmp_path)
    reserve.fill()
    assert not reserve.is_used


def test_a_reserve_that_a_quota_forbids_leaves_no_file(
    tmp_path: Path, set_room: SetRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    def quota(*_: object) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(os, "posix_fallocate", quota)
    reserve = DiskReserve(tmp_path)
    reserve.fill()
    assert (reserve.is_used, list(tmp_path.iterdir())) == (True, [])


def test_a_small_disk_keeps_a_small_reserve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_blocks=2_560, f_bavail=2_560, f_frsize=4_096))
    DiskReserve(tmp_path).fill()
    assert (tmp_path / ".reserve").stat().st_size == 2_560 * 4_096 // 64


def test_a_write_that_finds_the_disk_full_is_done_again_with_the_reserve(tmp_path: Path, set_room: SetRoom) -> None:
    reserve = DiskReserve(tmp_path)
    reserve.fill()
    calls: list[bool] = []

    def write() -> str:
        calls.append(reserve.is_used)
        if not reserve.is_used:
            raise FULL
        return "written"

    assert reserve.write(write) == "written"
    assert calls == [False, True]
    with pytest.raises(OSError, match="No space left"):
        reserve.write(full)
    with pytest.raises(OSError, match="Input/output"):
        reserve.write(failing)


def failing() -> None:
    raise OSError(errno.EIO, "Input/output error")


def test_while_the_disk_is_full_logs_accept_only_records_of_the_broker(
    tmp_path: Path, set_room: SetRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = opened(tmp_path)
    log = logs.create(NAME, CONFIG, uuid4())
    log.append(batch(1))
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", full)
        with pytest.raises(KafkaError) as error:
            log.append(batch(1))
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(KafkaError, match="the disk is full") as error:
        log.append(batch(1))
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.append_from_coordinator(batch(1)).base_offset == 1
    log.append_from_coordinator(batch(1, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True))
    marker: EndTransactionMarker = COMMIT
    assert log.append_marker(marker, 1, 0).base_offset == 3
    set_room(LARGEST)
    logs.watch_disk()
    with pytest.raises(KafkaError, match="the disk is full"):
        log.append(batch(1))
    set_room(2 * LARGEST)
    logs.watch_disk()
    assert log.append(batch(1)).base_offset == 4
    logs.close()


def test_a_start_on_a_full_disk_reports_it_and_serves(
    tmp_path: Path, set_room: SetRoom, caplog: pytest.LogCaptureFixture
) -> None:
    logs = opened(tmp_path)
    logs.create(NAME, CONFIG, uuid4()).append(batch(3))
    logs.close()
    (tmp_path / ".reserve").unlink()
    set_room(0)
    logs = opened(tmp_path)
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "is full: records are refused" in record.getMessage()
    assert len(read_all(dict(logs.items())[NAME])) == 3
    logs.close()


def test_deleted_files_are_removed_at_once_while_the_disk_is_full(tmp_path: Path, set_room: SetRoom) -> None:
    logs = opened(tmp_path)
    log = logs.create(NAME, LogConfig(segment_bytes=100, retention_bytes=1), uuid4())
    for _ in range(4):
        log.append(batch(1))
    logs.expire()
    # The files stay, because a fetch may still read from them.
    assert len(list(log.directory.glob("*.log.deleted"))) == 4
    set_room(0)
    logs.reserve.use(FULL)
    logs.watch_disk()
    assert not list(log.directory.glob("*.deleted"))
    logs.close()


def test_if_no_new_segment_can_be_created_retention_deletes_the_others(
    tmp_path: Path, set_room: SetRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = opened(tmp_path)
    log = logs.create(NAME, LogConfig(segment_bytes=100, retention_ms=1), uuid4())
    for _ in range(4):
        log.append(batch(1, first_timestamp=1))
    with monkeypatch.context() as patch:
        patch.setattr("hmb.storage.segment.Segment.make", full)
        deletion.expire(log)
    assert (log.log_start_offset, log.log_end_offset, len(log.segments)) == (3, 4, 1)
    deletion.expire(log)
    assert (log.log_start_offset, log.log_end_offset, log.size) == (4, 4, 0)
    assert log.append(batch(1)).base_offset == 4
    logs.close()
    assert [log.log_end_offset for _, log in opened(tmp_path).items()] == [5]


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_start_offsets_that_cannot_be_written_do_not_move(
    tmp_path: Path, set_room: SetRoom, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    logs = opened(tmp_path)
    log = logs.create(NAME, LogConfig(retention_ms=-1), uuid4())
    log.append(batch(5))

    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr("hmb.storage.state.manifest.replace_files", fail)
        with pytest.raises(OSError, match=os.strerror(code)):
            logs.delete_records({NAME: 3})
    assert log.log_start_offset == 0
    logs.delete_records({NAME: 3})
    assert log.log_start_offset == 3
    logs.delete_records({NAME: 2})
    assert log.log_start_offset == 3
    assert f"{NAME.topic} 0 3" in (tmp_path / START_OFFSETS).read_text()
    logs.close()


def test_a_state_file_without_disk_space_leaves_no_blocks(
    tmp_path: Path, set_room: SetRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = opened(tmp_path)
    before = (tmp_path / START_OFFSETS).read_text() if (tmp_path / START_OFFSETS).exists() else None
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            logs.write_checkpoints()
    assert not list(tmp_path.glob("*.tmp"))
    assert before is None or (tmp_path / START_OFFSETS).read_text() == before
    logs.close()


def test_a_log_of_its_own_needs_no_reserve(directory: Path) -> None:
    assert Log(directory, CONFIG, clean=True).append(batch(1)).base_offset == 0
