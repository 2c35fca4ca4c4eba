"""Tests that open a log with wrong or missing files, for example an index that does not match its segment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hmb.storage.files import durability as files
from hmb.storage.log import Log
from hmb.storage.recovery.clean_stop import MAX_UNINDEXED
from tests.storage.conftest import LogMaker, batch, read_all

SIZE = batch(2).size
INTERVAL = {"index_interval_bytes": 2 * SIZE}


def offsets(log: Log) -> list[int]:
    return [record.offset for record in read_all(log)]


def closed(open_log: LogMaker, batches: int, **config: object) -> Log:
    log = open_log(**config)
    for number in range(batches):
        log.append(batch(2, first_timestamp=1_000 + 10 * number))
    log.close()
    return log


FOREIGN = {
    "longer": lambda good: good + good[-8:-4] + b"\0\1\0\0" + b"\x7f\xff\xff\xff" * 6,
    "of another log": lambda good: bytes(range(1, 121)),
    "of ones": lambda good: b"\xff" * 240,
    "empty, padded": lambda good: bytes(240),
}


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("content", FOREIGN)
def test_an_index_that_does_not_match_the_log_is_rebuilt(
    open_log: LogMaker, content: str, suffix: str, clean: bool
) -> None:
    path = closed(open_log, 30, **INTERVAL).segments[0].path.with_suffix(suffix)
    good = path.read_bytes()
    path.write_bytes(FOREIGN[content](good))
    reopened = open_log(clean=clean, recovery_point=60, **INTERVAL)
    assert offsets(reopened) == list(range(60))
    assert reopened.offset_for_timestamp(1_205) == (1_210, 42)
    reopened.close()
    assert path.read_bytes() == good


def test_an_index_that_is_too_short_is_rebuilt(open_log: LogMaker) -> None:
    log = open_log()
    large = batch(1, size=100_000)
    for _ in range(2 * MAX_UNINDEXED // large.size):
        log.append(large)
    log.close()
    path = log.segments[0].path.with_suffix(".index")
    good = path.read_bytes()
    path.write_bytes(good[:8])
    open_log(clean=True).close()
    assert path.read_bytes() == good


@pytest.mark.parametrize("field", [3, 7])
def test_a_wrong_entry_in_the_middle_of_an_index_skips_no_record(open_log: LogMaker, field: int) -> None:
    log = closed(open_log, 30, **INTERVAL)
    path = log.segments[0].path.with_suffix(".index")
    good = path.read_bytes()
    for entry in range(len(good) // 8 - 1):
        for bit in range(8):
            data = bytearray(good)
            data[entry * 8 + field] ^= 1 << bit
            path.write_bytes(data)
            reopened = open_log(clean=True, recovery_point=60, **INTERVAL)
            for offset in range(60):
                region = reopened.read(offset, 1).records
                assert region is not None
                first = int.from_bytes(region.read()[:8], "big")
                assert first == offset // 2 * 2


def test_an_empty_log_file_is_an_empty_log(open_log: LogMaker, directory: Path) -> None:
    (directory / f"{40:020d}.log").touch()
    for clean in (True, False):
        assert open_log(clean=clean).log_end_offset == 40


@pytest.mark.parametrize("clean", [True, False])
def test_a_segment_missing_in_the_middle_is_reported_and_reads_go_on(
    open_log: LogMaker, clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    log = closed(open_log, 6, segment_bytes=2 * SIZE)
    log.segments[1].path.unlink()
    reopened = open_log(clean=clean, recovery_point=12, segment_bytes=2 * SIZE)
    assert "offsets 4 to 7 are missing" in caplog.text
    assert offsets(reopened) == [0, 1, 2, 3, 8, 9, 10, 11]


def test_overlapping_segments_are_reported_and_no_record_comes_twice(
    open_log: LogMaker, caplog: pytest.LogCaptureFixture
) -> None:
    log = closed(open_log, 6)
    path = log.segments[0].path
    path.with_name(f"{4:020d}.log").write_bytes(path.read_bytes()[2 * SIZE :])
    for clean in (True, False):
        reopened = open_log(clean=clean, recovery_point=12)
        assert "overlaps the next segment" in caplog.text
        assert offsets(reopened) == list(range(12))
        assert reopened.log_end_offset == 12


def test_foreign_files_are_left_alone(open_log: LogMaker, directory: Path, caplog: pytest.LogCaptureFixture) -> None:
    closed(open_log, 3)
    foreign = ["notes.txt", "x.log", "5.log", f"{2**63:020d}.log", "\N{SUPERSCRIPT TWO}.snapshot", "abc.index"]
    for name in foreign:
        (directory / name).write_bytes(b"something")
    for clean in (True, False):
        assert offsets(open_log(clean=clean)) == list(range(6))
    assert all((directory / name).read_bytes() == b"something" for name in foreign)
    assert caplog.text.count("x.log is not a segment") == 2


def test_a_damaged_snapshot_is_not_used(open_log: LogMaker, directory: Path) -> None:
    log = open_log()
    for sequence in range(3):
        log.append(batch(1, producer_id=7, producer_epoch=0, base_sequence=sequence))
    log.close()
    path = next(iter(directory.glob("*.snapshot")))
    good = path.read_bytes()
    for data in (b"", good[:-1], bytes(len(good)), good[:-1] + b"\xff", os.urandom(60)):
        path.write_bytes(data)
        duplicate = batch(1, producer_id=7, producer_epoch=0, base_sequence=2)
        assert open_log(clean=True).append(duplicate).base_offset == 2


def test_a_failing_disk_is_not_treated_as_an_empty_log(open_log: LogMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    closed(open_log, 3)

    def failing(path: Path, flags: int, mode: int = 0) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(files.os, "open", failing)
    with pytest.raises(PermissionError):
        open_log(clean=False)
