"""Tests of the deletion of old segments.

The log deletes its oldest segments if they are too old, if the log is too large, or after a DeleteRecords request.

A reader that has begun to read a segment can finish, even if the log deletes the segment in the meantime.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import read_records
from hmb.storage.cleanup import deletion
from hmb.storage.config import LogConfig
from hmb.storage.log import Log
from tests.storage.conftest import batch, messages, read_all

MakeLog = Callable[..., Log]


class Clock:
    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log_of(directory: Path, clock: Clock) -> MakeLog:
    """Return a function that makes a log. Each segment has one batch, and the timestamps are 1000, 2000, 3000, ..."""

    def log_of(segments: int, **config: int) -> Log:
        log = Log(directory, LogConfig(segment_bytes=batch(1).size, **config), clean=True, clock=clock)
        for number in range(segments):
            log.append(batch(1, first_timestamp=1_000 * (number + 1)))
        return log

    return log_of


@pytest.mark.parametrize(("now", "start"), [(1_000, 0), (1_500, 0), (1_501, 1), (2_501, 2), (4_500, 3), (4_501, 4)])
def test_segments_go_when_their_newest_record_is_too_old(log_of: MakeLog, clock: Clock, now: int, start: int) -> None:
    log = log_of(5, retention_ms=500)
    clock.now = now
    assert deletion.expire(log) == start == log.log_start_offset
    assert [record.offset for record in read_all(log)] == list(range(start, 5))


def test_retention_deletes_the_active_segment_and_offsets_continue(log_of: MakeLog, clock: Clock) -> None:
    log = log_of(3, retention_ms=500)
    clock.now = 10_000
    assert deletion.expire(log) == 3
    assert (log.log_start_offset, log.log_end_offset, log.size) == (3, 3, 0)
    assert deletion.expire(log) == 0  # Retention keeps an empty active segment.
    assert log.append(batch(1)).base_offset == 3


@pytest.mark.parametrize(("batches", "kept"), [(0, 0), (1, 1), (2.5, 3), (5, 5), (9, 5)])
def test_retention_by_size_deletes_no_more_segments_than_necessary(log_of: MakeLog, batches: float, kept: int) -> None:
    log = log_of(5, retention_bytes=int(batches * batch(1).size), retention_ms=-1)
    deletion.expire(log)
    assert log.log_end_offset - log.log_start_offset == kept


def test_messages_without_timestamps_age_with_their_file(directory: Path, clock: Clock) -> None:
    log = Log(directory, LogConfig(retention_ms=1_000), clean=True, clock=clock)
    log.append(messages(2, 0))
    clock.now = int(log.segments[0].path.stat().st_mtime * 1000) + 900
    assert deletion.expire(log) == 0
    clock.now += 200
    assert deletion.expire(log) == 1


def test_delete_records_moves_the_start_and_lets_whole_segments_go(log_of: MakeLog) -> None:
    log = log_of(5, retention_ms=-1)
    assert deletion.delete_records(log, 2) == 2
    with pytest.raises(KafkaError) as error:
        log.read(1, 100)
    assert error.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert deletion.delete_records(log, 1) == 2  # The log start offset never decreases.
    assert deletion.expire(log) == 2
    assert deletion.delete_records(log, -1) == 5
    for offset in (-2, 6):
        with pytest.raises(KafkaError):
            deletion.delete_records(log, offset)


def test_a_reader_of_a_deleted_segment_reads_on(log_of: MakeLog, clock: Clock) -> None:
    log = log_of(3, retention_ms=-1, file_delete_delay_ms=100)
    region = log.read(0, 1_000).records
    assert region is not None
    deletion.delete_records(log, 1)
    deletion.expire(log)
    names = sorted(path.name for path in log.directory.glob("*0.log*"))
    assert names == ["00000000000000000000.log.deleted"]
    clock.now += 100
    deletion.expire(log)
    assert not list(log.directory.glob("*.deleted"))
    assert [record.offset for record in read_records(region.read())] == [0]


def test_a_start_after_a_kill_finds_no_deleted_segment_again(log_of: MakeLog) -> None:
    log = log_of(3, retention_ms=-1)
    deletion.delete_records(log, 2)
    deletion.expire(log)
    reopened = Log(log.directory, LogConfig(retention_ms=-1), start_offset=2)
    assert (reopened.log_start_offset, reopened.log_end_offset) == (2, 3)
    assert not list(log.directory.glob("*.deleted"))
