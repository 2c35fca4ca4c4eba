"""Tests of the scan after a crash: it finds the end of the intact batches of one segment."""

from __future__ import annotations

from pathlib import Path

import pytest

from hmb.storage.config import LogConfig
from hmb.storage.recovery.scanning import Recovered, recover
from hmb.storage.segment import Segment
from tests.storage.conftest import batch

SIZE = batch(10).size


def segment_of(directory: Path, *first_offsets: int) -> Segment:
    """Write a segment whose batches of ten records begin at these offsets."""
    parts = [bytes(part) for first in first_offsets for part in batch(10).with_base_offset(first, 0)]
    (directory / f"{0:020d}.log").write_bytes(b"".join(parts))
    return Segment(directory, 0, LogConfig())


def test_an_intact_segment_ends_after_its_last_batch(tmp_path: Path) -> None:
    segment = segment_of(tmp_path, 0, 10, 20)
    assert recover(segment) == Recovered(30, is_damaged=False, has_transactions=False)
    assert (segment.size, segment.batch_count) == (3 * SIZE, 3)


@pytest.mark.parametrize("cut", [1, 30, 61, SIZE - 1])
def test_a_segment_that_ends_inside_a_batch_ends_before_it(tmp_path: Path, cut: int) -> None:
    """If the third batch of a segment is incomplete, the scan ends after the second batch."""
    segment = segment_of(tmp_path, 0, 10, 20)
    segment.file.truncate(2 * SIZE + cut)
    assert recover(segment) == Recovered(20, is_damaged=True, has_transactions=False)
    assert segment.size == 2 * SIZE
    assert segment.path.stat().st_size == 2 * SIZE + cut  # The scan cuts nothing off.


def test_a_wrong_crc_ends_the_intact_batches(tmp_path: Path) -> None:
    segment = segment_of(tmp_path, 0, 10, 20)
    segment.file.write([b"\xff"], SIZE + 100)
    assert recover(segment) == Recovered(10, is_damaged=True, has_transactions=False)


def test_a_gap_is_real_if_the_next_batch_confirms_it(tmp_path: Path) -> None:
    assert recover(segment_of(tmp_path, 10, 84, 94)).end_offset == 104


def test_a_batch_with_too_large_an_offset_is_damaged(tmp_path: Path) -> None:
    """The second batch has the offset 84, but the third has the smaller offset 30. So the offset 84 is damaged."""
    assert recover(segment_of(tmp_path, 0, 84, 30)) == Recovered(10, is_damaged=True, has_transactions=False)


def test_the_scan_builds_the_indexes_again(tmp_path: Path) -> None:
    segment = segment_of(tmp_path, *range(0, 1_000, 10))
    recover(segment)
    assert segment.offset_index.entries > 0
    found = segment.find(555, segment.size)
    assert found is not None and found[1].last_offset == 559
