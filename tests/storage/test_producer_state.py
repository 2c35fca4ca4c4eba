"""Tests of the producers' state in a log, and of the time after which the log removes a producer."""

from __future__ import annotations

from pathlib import Path

import pytest

from hmb.records import NO_TIMESTAMP
from hmb.storage.config import LogConfig
from hmb.storage.log import Log
from hmb.storage.producer_state import EXPIRATION_MS
from hmb.units import HOUR_MS
from tests.storage.conftest import batch, read_all

NOW = 1_700_000_000_000  # ms
CONFIG = LogConfig(segment_bytes=150)  # One batch fills a segment, so each append rolls the log.


class Clock:
    """The clock of the log. Its time changes only when a test changes `now` (ms)."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


def from_producer(producer_id: int, sequence: int, timestamp: int = NOW) -> memoryview:
    options = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
    return batch(first_timestamp=timestamp, size=80, **options)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(directory: Path, clock: Clock) -> Log:
    return Log(directory, CONFIG, clean=True, clock=clock)


@pytest.mark.parametrize("timestamp", [NOW - 25 * HOUR_MS, NO_TIMESTAMP])
def test_a_retried_batch_with_an_old_timestamp_is_a_duplicate_after_another_producer_rolled_the_segment(
    log: Log, timestamp: int
) -> None:
    first = log.append(from_producer(1, 0, timestamp))
    for sequence in range(3):
        log.append(from_producer(2, sequence))
    assert len(log.segments) > 1
    again = log.append(from_producer(1, 0, timestamp))
    assert again.base_offset == first.base_offset
    assert len(read_all(log)) == 4


def test_a_producer_is_forgotten_a_day_after_its_last_append(log: Log, clock: Clock) -> None:
    log.append(from_producer(1, 0, NOW + HOUR_MS))  # A timestamp in the future does not delay the expiry.
    clock.now += EXPIRATION_MS
    log.append(from_producer(2, 0, NOW + EXPIRATION_MS))
    assert [each.producer_id for each in log.producers.active()] == [1, 2]
    clock.now += 1
    log.append(from_producer(2, 1, NOW + EXPIRATION_MS))
    assert [each.producer_id for each in log.producers.active()] == [2]


@pytest.mark.parametrize("with_snapshot", [True, False])
def test_a_start_counts_as_the_last_append_of_each_producer_on_disk(
    log: Log, directory: Path, clock: Clock, with_snapshot: bool
) -> None:
    old = NOW - 25 * HOUR_MS
    log.append(from_producer(1, 0, old))
    log.close()
    if not with_snapshot:
        for path in directory.glob("*.snapshot"):
            path.unlink()
    clock.now += 30 * HOUR_MS
    log = Log(directory, CONFIG, clean=True, clock=clock)
    clock.now += EXPIRATION_MS
    log.append(from_producer(2, 0, clock.now))
    assert log.append(from_producer(1, 0, old)).base_offset == 0
    clock.now += 1
    log.append(from_producer(2, 1, clock.now))
    assert [each.producer_id for each in log.producers.active()] == [2]


def test_the_shown_timestamp_of_a_producer_is_that_of_its_last_batch_also_after_a_restart(
    log: Log, directory: Path, clock: Clock
) -> None:
    old = NOW - 25 * HOUR_MS
    log.append(from_producer(1, 0, old))
    log.close()
    for found in (log, Log(directory, CONFIG, clean=True, clock=clock)):
        ((_, producer, _),) = found.producers.active()
        assert producer.timestamp == old
