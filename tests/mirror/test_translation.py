"""Tests of the translation of source offsets to target offsets.

A run is a series of copied records with consecutive offsets in both clusters. The tests translate offsets inside runs,
between runs, and after the oldest runs were dropped.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.mirror.translation import MAX_RUNS, CopiedRun, Translation


def translation(*runs: tuple[int, int, int]) -> Translation:
    """Return a `Translation` with the given runs, for a partition whose copy begins at offset 0.

    A run is `(first offset at the source, first offset at the target, number of records)`.
    """
    made = Translation([CopiedRun(0, 0, 0)])
    for run in runs:
        made.add(*run)
    return made


def test_a_copy_without_gaps_keeps_its_offsets() -> None:
    copy = translation((0, 0, 3), (3, 3, 2))
    assert copy.keeps_offsets
    assert [copy.translate(offset) for offset in (0, 2, 5)] == [0, 2, 5]
    assert copy.target_end == 5


def test_an_offset_after_a_marker_of_the_source_is_translated_exactly() -> None:
    copy = translation((0, 0, 3), (4, 3, 2))
    assert not copy.keeps_offsets
    assert [copy.translate(offset) for offset in range(7)] == [0, 1, 2, 3, 3, 4, 5]


def test_an_offset_that_the_source_deleted_before_the_start_becomes_the_first_offset() -> None:
    copy = Translation([CopiedRun(100, 7, 0)])
    copy.add(100, 7, 5)
    assert [copy.translate(offset) for offset in (3, 100, 104)] == [7, 7, 11]


def test_the_text_of_a_translation_contains_all_its_runs() -> None:
    copy = translation((0, 0, 3), (4, 3, 2))
    assert str(copy) == "0:0:3,4:3:2"
    assert str(Translation.parse(str(copy))) == str(copy)


@pytest.mark.parametrize("text", ["", "1:2", "a:b:c", "1:2:3;4:5:6"])
def test_a_text_that_no_mirror_has_written_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):
        Translation.parse(text)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3), st.integers(0, 3)), max_size=4 * MAX_RUNS))
def test_no_translation_skips_a_record(steps: list[tuple[int, int, int]]) -> None:
    """If a record's offset is translated, the result is never greater than the offset of the record's copy.

    Each step `(records, source gap, target gap)` first skips offsets in both clusters, and then copies records.
    """
    copy, exact = translation(), {}
    source = target = 0
    for length, source_gap, target_gap in steps:
        source, target = source + source_gap, target + target_gap
        copy.add(source, target, length)
        exact |= {source + i: target + i for i in range(length)}
        source, target = source + length, target + length
    assert str(copy).count(",") < MAX_RUNS
    assert all(copy.translate(offset) <= expected for offset, expected in exact.items())
    assert len(str(copy)) < 4096
