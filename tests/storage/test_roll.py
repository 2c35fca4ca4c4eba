"""Tests of rolling, in which a log closes its active segment and creates the next one.

The log syncs a segment before it creates the next one. Readers and small appends do not wait for this sync.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage import group_commit
from hmb.storage.cleanup import deletion
from hmb.storage.config import LogConfig
from hmb.storage.log import Log
from hmb.storage.segment import Segment
from tests.storage.conftest import LogMaker, batch, messages, read_all
from tests.storage.transactions import ABORT, Writer

SIZE = batch(1).size
WAIT = 30  # seconds


class Synced:
    """An object that stores the size (bytes) that each segment had at its last sync.

    The dict `sizes` maps the base offset of a segment to this size. The list `at_creation` has one pair for each new
    segment: the segment's base offset, and a copy of `sizes` from the time when the log created the segment.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: dict[int, int] = {}
        self.at_creation: list[tuple[int, dict[int, int]]] = []
        flush, init = Segment.flush, Segment.__init__

        def flushing(segment: Segment) -> None:
            flush(segment)
            self.sizes[segment.base_offset] = segment.size

        def creating(segment: Segment, directory: Path, base_offset: int, config: LogConfig, **rest: str) -> None:
            init(segment, directory, base_offset, config, **rest)
            self.at_creation.append((base_offset, dict(self.sizes)))

        monkeypatch.setattr(Segment, "flush", flushing)
        monkeypatch.setattr(Segment, "__init__", creating)


@pytest.mark.parametrize("kind", ["batches", "messages", "transactions"])
def test_a_log_syncs_its_active_segment_before_it_rolls(
    open_log: LogMaker, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A log syncs its active segment before it creates the next one.

    Before a bug was fixed, the log did not sync the active segment first. After a power cut, the new segment could
    exist although the end of the old segment was missing.
    """
    log = open_log(segment_bytes=3 * SIZE)
    synced = Synced(monkeypatch)
    writer = Writer(log, 7)
    for _ in range(15):
        if kind == "transactions":
            writer.write()
            writer.end(ABORT)
        else:
            log.append(batch(1) if kind == "batches" else messages(1))
    segments = {segment.base_offset: segment.size for segment in log.segments}
    assert len(synced.at_creation) >= 2
    for base_offset, sizes in synced.at_creation:
        assert sizes == {base: size for base, size in segments.items() if base < base_offset}


def test_a_log_that_expires_as_a_whole_is_synced_before_it_rolls(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(directory, LogConfig(retention_ms=1), clean=True, clock=lambda: 1_000_000)
    log.append(batch(1))
    synced = Synced(monkeypatch)
    assert deletion.expire(log) == 1
    assert synced.at_creation == [(1, {0: SIZE})]


def test_readers_and_small_appends_go_on_while_a_roll_waits_for_the_disk(
    open_log: LogMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    large, small = batch(1, size=500), batch(1)
    log = open_log(segment_bytes=large.size + 2 * small.size)
    log.append(large)
    syncing, go_on = threading.Event(), threading.Event()
    flush = Segment.flush

    def slow(segment: Segment) -> None:
        syncing.set()
        assert go_on.wait(WAIT)
        flush(segment)

    monkeypatch.setattr(Segment, "flush", slow)
    rolls = threading.Thread(target=log.append, args=[large])
    rolls.start()
    assert syncing.wait(WAIT)
    assert log.append(small).base_offset == 1  # The old segment has room for this batch.
    assert [record.offset for record in read_all(log)] == [0, 1]
    go_on.set()
    rolls.join(WAIT)
    assert [segment.base_offset for segment in log.segments] == [0, 2]
    assert [record.offset for record in read_all(log)] == [0, 1, 2]


def test_a_log_whose_sync_fails_does_not_roll(open_log: LogMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(segment_bytes=SIZE)
    log.append(batch(1))

    def fail(_: Segment) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Segment, "flush", fail)
    with pytest.raises(KafkaError) as error:
        log.append(batch(1))
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert (log.log_end_offset, len(log.segments)) == (1, 1)


def test_a_large_segment_is_synced_ahead_of_its_roll(open_log: LogMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log syncs a large segment before the segment is full.

    Otherwise, when a segment of 1 GB is full, producers would wait until the whole segment is on the disk.
    """
    monkeypatch.setattr(group_commit, "SYNC_AHEAD", 2 * SIZE)
    synced, flush = threading.Event(), Segment.flush

    def flushing(segment: Segment) -> None:
        flush(segment)
        synced.set()

    monkeypatch.setattr(Segment, "flush", flushing)
    log = open_log()
    log.append(batch(1))
    assert not synced.is_set()
    log.append(batch(1))
    assert synced.wait(WAIT)
