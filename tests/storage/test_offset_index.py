"""A segment really writes the entries that the worked example in the docstring of the offset index shows."""

from __future__ import annotations

import re
from pathlib import Path

from hmb.records import encode_batch
from hmb.storage import offset_index
from hmb.storage.config import LogConfig
from hmb.storage.files.virtual import DurableFile
from hmb.storage.segment import Segment
from hmb.storage.time_index import TimestampOffset
from tests.storage.conftest import records

BASE_OFFSET, WANTED = 8021, 8100
ENTRY = re.compile(r"^ +(\d+) +(\d+)(?: |$)", re.MULTILINE)


def batch_of_1000_bytes() -> memoryview:
    """Return a batch of ten records that has exactly 1,000 bytes."""
    batches = (encode_batch([*records(9, size=84), records(10, size=last)[9]]) for last in range(64, 128))
    return next(memoryview(found) for found in batches if len(found) == 1000)


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
