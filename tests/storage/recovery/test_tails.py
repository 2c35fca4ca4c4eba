"""Tests of preallocated files.

A preallocated file has its full size from the first append on, and is cut when it is closed. If the broker is killed,
zeros remain at the end of the file. These zeros are not damage.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from hmb.storage.log import Log
from hmb.storage.recovery.tails import is_all_zeros, keep
from hmb.storage.segment import Segment
from tests.storage.conftest import LogMaker, batch, read_all

SIZE = 1 << 20
MIB = 1 << 20


def length(segment: Segment) -> int:
    return segment.path.stat().st_size


def fill(log: Log, batches: int) -> Log:
    for sequence in range(log.log_end_offset, log.log_end_offset + batches):
        log.append(batch(1, producer_id=7, producer_epoch=0, base_sequence=sequence))
    return log


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_segment_has_its_full_size_until_the_log_rolls(open_log: LogMaker) -> None:
    log = fill(open_log(preallocate=True, segment_bytes=SIZE), 3)
    (first,) = log.segments
    # The rest of the file is a hole, so it uses no blocks.
    assert (length(first), first.path.stat().st_blocks * 512 < SIZE // 2) == (SIZE, True)
    log.append(batch(1, size=SIZE - 100))
    second = log.segments[1]
    assert (length(first), length(second)) == (first.size, SIZE)
    assert [record.offset for record in read_all(log, 2 * SIZE)] == list(range(4))
    log.close()
    assert length(second) == second.size
    assert open_log(preallocate=True, segment_bytes=SIZE).log_end_offset == 4


def test_an_empty_file_is_not_preallocated(open_log: LogMaker) -> None:
    log = open_log(preallocate=True, segment_bytes=SIZE)
    log.segments[0].make(sync=True)
    assert read_all(log) == []
    assert length(log.segments[0]) == 0


def test_after_a_kill_the_zeros_are_cut_and_are_not_damage(
    open_log: LogMaker, caplog: pytest.LogCaptureFixture
) -> None:
    log = fill(open_log(preallocate=True, segment_bytes=SIZE), 5)
    for expected in (5, 8):
        reopened = open_log(clean=False, preallocate=True, segment_bytes=SIZE)
        assert length(reopened.segments[0]) == reopened.segments[0].size == expected * batch(1).size
        assert [record.offset for record in read_all(reopened)] == list(range(expected))
        fill(reopened, 3)
    assert complaints(caplog) == []
    assert log.directory == reopened.directory


def test_an_empty_segment_may_be_all_zeros(open_log: LogMaker, caplog: pytest.LogCaptureFixture) -> None:
    log = open_log(preallocate=True, segment_bytes=SIZE)
    log.segments[0].file.truncate(SIZE)
    assert open_log(clean=False, preallocate=True).log_end_offset == 0
    assert (length(log.segments[0]), complaints(caplog)) == (0, [])


@pytest.mark.parametrize("clean", [True, False])
def test_a_cut_that_did_not_reach_the_disk_is_repeated(
    open_log: LogMaker, caplog: pytest.LogCaptureFixture, clean: bool
) -> None:
    log = fill(open_log(preallocate=True, segment_bytes=3 * batch(1).size), 5)
    log.close()
    for segment in log.segments:
        os.truncate(segment.path, SIZE)
    reopened = open_log(clean=clean, preallocate=True, segment_bytes=3 * batch(1).size)
    assert [record.offset for record in read_all(reopened)] == list(range(5))
    assert [length(segment) for segment in reopened.segments] == [3 * batch(1).size, 2 * batch(1).size]
    assert complaints(caplog) == []


def test_half_a_batch_in_front_of_the_zeros_is_damage(open_log: LogMaker, caplog: pytest.LogCaptureFixture) -> None:
    log = fill(open_log(preallocate=True, segment_bytes=SIZE), 2)
    torn = bytes(batch(1).view)[:70]
    log.segments[0].file.write([torn], log.segments[0].size)
    assert open_log(clean=False, preallocate=True, segment_bytes=SIZE).log_end_offset == 2
    (complaint,) = complaints(caplog)
    assert f"position {2 * batch(1).size}: " in complaint and "cut" in complaint


def test_zeros_that_nobody_allocated_are_reported(open_log: LogMaker, caplog: pytest.LogCaptureFixture) -> None:
    """If a log file was not preallocated but ends with zeros, the broker logs a warning.

    A power cut can cause these zeros: the new size of the file is on the disk, but the new data is not.
    """
    log = fill(open_log(), 2)
    os.truncate(log.segments[0].path, SIZE)
    assert open_log(clean=False).log_end_offset == 2
    assert len(complaints(caplog)) == 1


def test_a_setting_that_is_withdrawn_leaves_no_zeros(open_log: LogMaker) -> None:
    log = fill(open_log(preallocate=True, segment_bytes=SIZE), 2)
    log.reconfigure(open_log().config)
    log.close()
    assert length(log.segments[0]) == 2 * batch(1).size


@pytest.mark.parametrize("data_at", [0, 5, MIB, 3 * MIB - 1])
def test_a_byte_after_holes_is_found(tmp_path: Path, data_at: int) -> None:
    path = tmp_path / "file"
    path.touch()
    os.truncate(path, 3 * MIB)
    with path.open("r+b", buffering=0) as file:
        assert is_all_zeros(file, 0)
        os.pwrite(file.fileno(), b"\0", data_at)
        assert is_all_zeros(file, 0)
        os.pwrite(file.fileno(), b"x", data_at)
        assert not is_all_zeros(file, data_at)
        assert is_all_zeros(file, data_at + 1)


def test_a_rest_is_kept_with_its_holes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"in front" + b"behind")
    os.truncate(path, 8 * MIB)
    with path.open("r+b") as file:
        file.seek(5 * MIB)
        file.write(b"far behind")
    kept = keep(path, 8)
    assert kept.name == "file.8.cut"
    assert kept.read_bytes() == path.read_bytes()[8:]
    assert kept.stat().st_blocks * 512 < 4 * MIB
    assert keep(path, 8).name == "file.8.1.cut"
