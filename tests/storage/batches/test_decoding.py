"""Tests of damage that the broker finds when it decodes the records of a batch.

The broker reports a damaged batch once, and does not return it to clients.
"""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import Codec, Record, RecordBatch, encode_batch
from hmb.records.changed_batch import with_records
from hmb.storage.batches import time_search
from hmb.storage.cleanup import deletion
from hmb.storage.config import LogConfig
from hmb.storage.log import Log
from tests.storage.conftest import batch, messages

ATTRIBUTES, LENGTH, MAX_TIMESTAMP = 22, 8, 42  # the fields' positions in a batch


def timed_batch(timestamp: int, codec: Codec = Codec.NONE) -> RecordBatch:
    return RecordBatch.parse(encode_batch([Record(timestamp=timestamp, value=b"v" * 50)], codec=codec))


@pytest.fixture
def log(directory: Path) -> Log:
    """Return a log of twelve batches with the timestamps 0, 10, 20, ... Each segment has three batches."""
    log = Log(directory, LogConfig(segment_bytes=3 * timed_batch(0).size), clean=True)
    for timestamp in range(0, 120, 10):
        log.append(timed_batch(timestamp))
    return log


def damage(log: Log, offset: int, place: int) -> str:
    """Change a bit of the batch at `offset`. Return the beginning of the broker's message about the damage."""
    segment = log.segments[offset // 3]
    position = offset % 3 * timed_batch(0).size + place
    (byte,) = segment.file.read(1, position)
    segment.file.write([bytes([byte ^ 1])], position)
    return f"{segment.path}, position {position - place}, offsets {offset} to {offset}: the batch's CRC is 0x"


@pytest.mark.parametrize("place", [ATTRIBUTES, MAX_TIMESTAMP, 62, 100])
def test_a_search_by_time_skips_a_damaged_batch(log: Log, place: int, caplog: pytest.LogCaptureFixture) -> None:
    """A search by time skips a damaged batch.

    Before a bug was fixed, it used the batch's timestamp, which the damage had changed.
    """
    named = damage(log, 4, place)
    for _ in range(3):
        assert log.offset_for_timestamp(40) == (50, 5)  # the first record that a reader can get
        assert log.offset_for_timestamp(35) == (50, 5)
        assert log.offset_for_timestamp(30) == (30, 3)
        assert log.offset_for_timestamp(50) == (50, 5)
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert named in caplog.text


def test_a_damaged_batch_at_the_end_of_a_segment_leaves_the_search_to_the_next_one(log: Log) -> None:
    damage(log, 5, 100)
    assert log.offset_for_timestamp(45) == (60, 6)
    damage(log, 11, 100)
    assert log.offset_for_timestamp(105) is None


def test_a_wrong_length_does_not_end_the_search(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    """A search by time repairs a batch whose length is wrong, and continues.

    Before a bug was fixed, the search ended with an error.
    """
    damage(log, 4, LENGTH + 2)
    damage(log, 7, LENGTH + 2)
    assert [log.offset_for_timestamp(timestamp) for timestamp in (30, 40, 50, 60, 80)] == [
        *((30, 3), (40, 4), (50, 5), (60, 6), (80, 8))
    ]
    assert caplog.text.count("are restored: their CRC is right") == 2


def test_a_search_passes_over_records_that_nobody_can_read(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    frame = timed_batch(200)
    log.append(RecordBatch.parse(with_records(frame, b"\x99" * 10, 1, 200)))
    log.append(timed_batch(210))
    assert log.offset_for_timestamp(150) == (210, 13)
    assert "offsets 12 to 12: a record of the batch cannot be read" in caplog.text


def test_a_search_does_not_read_a_batch_that_is_too_large(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search by time does not read a batch that is too large, and returns the batch's first offset.

    A batch is too large if it has too many records, or too many bytes after decompression. The first matching record
    may have a higher offset. A consumer that starts at the batch's first offset misses no record.
    """
    log.append(RecordBatch.parse(encode_batch([Record(timestamp=at, value=b"v" * 50) for at in (130, 140, 150)])))
    assert log.offset_for_timestamp(145) == (150, 14)
    monkeypatch.setattr("hmb.records.filtering.MAX_BATCH_RECORDS", 2)
    assert log.offset_for_timestamp(145) == (150, 12)
    deletion.delete_records(log, 13)
    assert log.offset_for_timestamp(145) == (150, 13)
    log.append(timed_batch(200, Codec.ZSTD))
    log.append(messages(2, 1, Codec.GZIP))
    log.reconfigure(LogConfig(max_decompressed=50))
    assert log.offset_for_timestamp(160) == (200, 15)
    with pytest.raises(KafkaError) as error:  # The batch's first offset is known only after decompression.
        log.offset_for_timestamp(1_000)
    assert error.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_old_messages_are_checked_too(directory: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = Log(directory, LogConfig(), clean=True)
    for codec in (Codec.NONE, Codec.GZIP):
        log.append(messages(3, 1, codec))
    log.append(batch(1, first_timestamp=2_000))
    segment = log.segments[0]
    segment.file.write([b"\xff"], 20)  # a byte of the first message
    wrapper_end = segment.size - batch(1).size
    segment.file.write([b"\xff"], wrapper_end - 1)
    assert log.offset_for_timestamp(1_000) == (1_001, 1)
    assert log.offset_for_timestamp(1_003) == (2_000, 6)
    lines = [record.message for record in caplog.records]
    assert len(lines) == 2
    assert f"{segment.path}, position 0, offsets up to 0: the message's CRC is 0x" in lines[0]
    assert "offsets up to 5: the message's CRC is 0x" in lines[1]


def test_an_index_entry_of_an_unfinished_append_is_not_damage(log: Log) -> None:
    """An append writes the entry of the time index before it raises the segment's size.

    A search between these two steps finds no batch for the entry. The search must not report this as damage.
    """
    active = log.segments[-1]
    active.offset_index.append(11, active.size)
    active.time_index.append(115, 11)
    assert time_search.first_at_or_after(log.segments, 111, 0) is None


def test_a_search_in_a_log_without_damage_logs_nothing(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    for timestamp in range(0, 120, 5):
        log.offset_for_timestamp(timestamp)
    log.offset_for_timestamp(None)
    assert not caplog.text
