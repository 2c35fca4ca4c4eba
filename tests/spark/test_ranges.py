"""Tests of the ranges of offsets that the tasks of a query read: the ranges contain each offset exactly once.

A streaming query can limit how many offsets it reads in one trigger. Each partition gets a share of this limit. A
partition with more unread offsets gets a larger share, in proportion.
"""

from hypothesis import given
from hypothesis import strategies as st

from hmb.protocol.topics import TopicPartition
from hmb.spark.ranges import OffsetRange, cut, limited, ranges_between

starts = st.integers(0, 100)
sizes = st.integers(0, 300)


def partition(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def of_sizes(*sizes: int) -> list[OffsetRange]:
    return [OffsetRange(partition(number), 10, 10 + size) for number, size in enumerate(sizes)]


@given(st.lists(st.tuples(starts, sizes), max_size=8), st.none() | st.integers(1, 40), st.none() | st.integers(1, 200))
def test_pieces_cover_every_offset_once(
    bounds: list[tuple[int, int]], min_partitions: int | None, max_records: int | None
) -> None:
    start = {partition(number): first for number, (first, _) in enumerate(bounds)}
    end = {partition(number): first + size for number, (first, size) in enumerate(bounds)}
    pieces = cut(ranges_between(start, end), min_partitions, max_records)
    at = dict(start)
    for piece in pieces:
        assert piece.first == at[piece.partition] and piece.size > 0
        at[piece.partition] = piece.end
        assert max_records is None or piece.size <= max_records
    assert at == end


def test_without_options_a_partition_is_a_task() -> None:
    assert cut(of_sizes(5, 7), None, None) == of_sizes(5, 7)
    assert cut(of_sizes(5, 7), 2, None) == of_sizes(5, 7), "enough of them already"


def test_min_partitions_cuts_the_large_ones() -> None:
    pieces = cut(of_sizes(1, 1, 1000), 10, None)
    assert [piece.size for piece in pieces] == [1, 1] + [125] * 8


def test_halves_are_rounded_up_as_the_connector_rounds() -> None:
    assert len(cut(of_sizes(100, 100), 5, None)) == 6


def test_max_records_bounds_each_task() -> None:
    assert [str(piece) for piece in cut(of_sizes(5), None, 2)] == ["t-0 [10, 11)", "t-0 [11, 13)", "t-0 [13, 15)"]


@given(st.lists(st.tuples(starts, sizes), min_size=1, max_size=8), st.integers(1, 1000))
def test_a_limit_is_kept_and_makes_progress_everywhere(bounds: list[tuple[int, int]], most: int) -> None:
    start = {partition(number): first for number, (first, _) in enumerate(bounds)}
    end = {partition(number): first + size for number, (first, size) in enumerate(bounds)}
    taken = limited(start, end, most)
    assert all(start[it] <= taken[it] <= end[it] for it in end)
    assert all(taken[it] > start[it] for it in end if end[it] > start[it])
    # Shares below 1 are rounded up, which adds at most 1 for each partition.
    assert sum(taken[it] - start[it] for it in end) <= most + len(end)


def test_a_limit_is_shared_by_backlog() -> None:
    start = {partition(0): 0, partition(1): 100}
    end = {partition(0): 300, partition(1): 200}
    assert limited(start, end, 40) == {partition(0): 30, partition(1): 110}


def test_a_log_that_became_shorter_is_not_hidden_by_the_limit() -> None:
    start, end = {partition(0): 50, partition(1): 0}, {partition(0): 3, partition(1): 100}
    assert limited(start, end, 10) == {partition(0): 3, partition(1): 10}
