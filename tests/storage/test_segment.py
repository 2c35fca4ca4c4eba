"""Tests of one segment: it appends batches, finds them again by offset, and has an index entry for each 4 KiB."""

from __future__ import annotations

from pathlib import Path

import pytest

from hmb.records import RecordBatch, read_records
from hmb.storage.config import LogConfig
from hmb.storage.segment import DamagedSegment, Segment
from hmb.storage.time_index import TimestampOffset
from tests.storage.conftest import batch

BASE_OFFSET = 8021
RECORDS = 10  # number of records in each batch


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    return Segment(tmp_path, BASE_OFFSET, LogConfig(index_interval_bytes=1_000))


def append(segment: Segment, count: int) -> None:
    """Append `count` batches of ten records."""
    for number in range(count):
        first = BASE_OFFSET + RECORDS * number
        data: RecordBatch = batch(RECORDS)
        last = first + data.last_offset_delta
        segment.append(data.with_base_offset(first, 0), last, TimestampOffset(data.max_timestamp, last))


def read(segment: Segment, offset: int, max_bytes: int) -> list[int]:
    """Return the offsets of all complete records that a read returns."""
    region = segment.read(offset, max_bytes, segment.size, BASE_OFFSET + RECORDS * (segment.batch_count or 0))
    return [] if region is None else [record.offset for record in read_records(region.read())]


def test_a_read_begins_with_the_batch_that_contains_the_offset(segment: Segment) -> None:
    append(segment, 3)
    second, third = BASE_OFFSET + 10, BASE_OFFSET + 20
    assert read(segment, second + 5, 1_000_000) == list(range(second, third + 10))


def test_a_read_returns_the_first_batch_even_if_the_limit_is_smaller(segment: Segment) -> None:
    append(segment, 3)
    assert read(segment, BASE_OFFSET, 1) == list(range(BASE_OFFSET, BASE_OFFSET + 10))


def test_a_read_after_the_last_record_returns_nothing(segment: Segment) -> None:
    append(segment, 3)
    assert read(segment, BASE_OFFSET + 30, 1_000_000) == []


def test_the_index_has_an_entry_after_each_interval(segment: Segment) -> None:
    append(segment, 12)
    size = batch(RECORDS).size
    per_entry = 1_000 // size + 1  # the smallest number of batches that together have more than 1,000 bytes
    assert segment.offset_index.entries == (12 - 1) // per_entry
    assert segment.offset_index.lookup(BASE_OFFSET + 119).position % size == 0


def test_a_read_is_the_same_with_and_without_an_index(segment: Segment) -> None:
    append(segment, 12)
    expected = [read(segment, offset, 1) for offset in range(BASE_OFFSET, BASE_OFFSET + 120)]
    segment.offset_index.clear()
    assert [read(segment, offset, 1) for offset in range(BASE_OFFSET, BASE_OFFSET + 120)] == expected


def test_offsets_that_go_back_are_damage(segment: Segment) -> None:
    append(segment, 2)
    segment.file.write([bytes(8)], batch(RECORDS).size)  # The second batch now begins at offset 0.
    with pytest.raises(DamagedSegment, match="offsets go back"):
        read(segment, BASE_OFFSET + 15, 1)
