"""Tests of look-ups in the offset index and the time index, and of the example in the docstring of `offset_index`."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from pathlib import Path

import pytest

from hmb.records import encode_batch
from hmb.storage import offset_index
from hmb.storage.config import LogConfig
from hmb.storage.files.sorted_entries import BLOCK
from hmb.storage.files.virtual import DurableFile
from hmb.storage.offset_index import OffsetIndex
from hmb.storage.segment import Segment
from hmb.storage.time_index import TimeIndex, TimestampOffset
from tests.storage.conftest import records

BASE_OFFSET, WANTED = 8021, 8100
ENTRY = re.compile(r"^ +(\d+) +(\d+)(?: |$)", re.MULTILINE)


def batch_of_1000_bytes() -> memoryview:
    """Return a batch of ten records that has exactly 1,000 bytes."""
    batches = (encode_batch([*records(9, size=84), records(10, size=last)[9]]) for last in range(64, 128))
    return next(memoryview(found) for found in batches if len(found) == 1000)


def test_a_look_up_returns_the_last_entry_at_or_below_the_offset(tmp_path: Path) -> None:
    """A look-up returns the last entry at or below an offset, or the segment's start if no such entry exists.

    The test uses the entries of the example in the docstring of `offset_index`.
    """
    index = OffsetIndex(tmp_path / "8021.index", BASE_OFFSET)
    for relative_offset, position in ((59, 5_000), (109, 10_000), (159, 15_000)):
        index.append(BASE_OFFSET + relative_offset, position)
    assert index.lookup(WANTED) == (BASE_OFFSET + 59, 5_000)
    assert index.lookup(BASE_OFFSET + 109) == (BASE_OFFSET + 109, 10_000)
    assert index.lookup(BASE_OFFSET + 58) == (BASE_OFFSET, 0)  # No entry: the scan begins at the segment's start.
    assert index.last == (BASE_OFFSET + 159, 15_000)


def test_the_entries_of_the_example_are_those_of_a_segment(tmp_path: Path) -> None:
    segment, data = Segment(tmp_path, BASE_OFFSET, LogConfig()), batch_of_1000_bytes()
    for number in range(20):
        last = BASE_OFFSET + 10 * number + 9
        segment.append([data], last, TimestampOffset(number, last))
    written = DurableFile(segment.offset_index.path, exists=True).read(1000, 0)
    entries = list(offset_index.OffsetIndex.ENTRY.iter_unpack(written))
    assert offset_index.__doc__ is not None
    assert [(int(offset), int(position)) for offset, position in ENTRY.findall(offset_index.__doc__)] == entries
    assert segment.offset_index.lookup(WANTED) == (BASE_OFFSET + 59, 5000)


@pytest.mark.parametrize("entries", [0, 1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7])
def test_a_look_up_finds_what_a_linear_search_finds(tmp_path: Path, entries: int) -> None:
    offsets = OffsetIndex(tmp_path / "5.index", 5)
    times = TimeIndex(tmp_path / "5.timeindex", 5)
    for number in range(1, entries + 1):
        offsets.append(5 + 3 * number, 100 * number)
        times.append(10 * number, 5 + 3 * number)
        if number % 401 == 0:
            # A look-up stores the first key of each block of entries. Later look-ups must add the keys of new blocks.
            offsets.lookup(5)
    keys = [5 + 3 * number for number in range(1, entries + 1)]
    for offset in range(5, 5 + 3 * entries + 9):
        number = bisect_right(keys, offset)
        assert offsets.lookup(offset) == ((keys[number - 1], 100 * number) if number else (5, 0))
    for timestamp in range(0, 10 * entries + 20, 7):
        number = bisect_left(range(10, 10 * entries + 1, 10), timestamp)
        assert times.lookup(timestamp).offset == 5 + 3 * number
    for position in range(0, 100 * entries + 300, 50):
        number = bisect_left(range(100, 100 * entries + 1, 100), position)
        assert offsets.at_or_after(position) == ((keys[number], 100 * number + 100) if number < entries else None)
