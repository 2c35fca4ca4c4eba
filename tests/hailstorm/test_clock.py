"""Tests of the class `Clock`. A clock contains one offset for each partition.

Clocks are only partially ordered. For example, the clock (4, 0) is below the clock (5, 1), but neither of the clocks
(4, 0) and (3, 1) is below the other.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.client import TopicPartition
from hmb.hailstorm.clock import Clock

P0, P1 = TopicPartition("tags", 0), TopicPartition("tags", 1)
clocks = st.tuples(st.integers(0, 5), st.integers(0, 5)).map(lambda offsets: Clock({P0: offsets[0], P1: offsets[1]}))


def test_an_offset_is_the_next_one() -> None:
    clock = Clock({P0: 4, P1: 0})
    assert clock.includes(P0, 3)
    assert not clock.includes(P0, 4)
    assert not clock.includes(P1, 0)  # The clock of an empty partition includes no record.


def test_two_clocks_may_be_incomparable() -> None:
    one, other = Clock({P0: 4, P1: 0}), Clock({P0: 3, P1: 1})
    assert not one <= other and not other <= one and one != other


@given(clocks, clocks, clocks)
def test_the_order_is_reflexive_antisymmetric_and_transitive(a: Clock, b: Clock, c: Clock) -> None:
    assert a <= a
    assert (a <= b and b <= a) == (a == b)
    if a <= b and b <= c:
        assert a <= c
    assert (a < b) == (a <= b and a != b)


@given(clocks, clocks)
def test_the_minimum_is_the_greatest_clock_below_both(a: Clock, b: Clock) -> None:
    lowest = a.minimum(b)
    assert lowest <= a and lowest <= b
    assert lowest == Clock({p: min(a[p], b[p]) for p in a})


@given(clocks)
def test_a_clock_comes_back_from_the_codec_and_has_one_hash(clock: Clock) -> None:
    restored = Clock.from_value(clock.to_value())
    assert restored == clock and hash(restored) == hash(clock)
    assert len({restored, clock}) == 1


def test_clocks_of_different_partitions_are_not_compared() -> None:
    with pytest.raises(ValueError, match=r"different partitions.*tags-1: 3"):
        _ = Clock({P0: 1}) <= Clock({P0: 1, P1: 3})


def test_a_part_of_the_partitions_can_reach_a_clock_of_all() -> None:
    goal = Clock({P0: 2, P1: 7})
    assert Clock({P0: 2}).has_reached(goal)
    assert Clock({P0: 3, P1: 7}).has_reached(goal)
    assert not Clock({P1: 6}).has_reached(goal)


def test_a_negative_offset_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        Clock({P0: -1})


def test_a_clock_shows_its_partitions_in_order() -> None:
    assert str(Clock({P1: 2, P0: 1})) == "(tags-0: 1, tags-1: 2)"
    assert Clock({P0: 1}).moved({P1: 5}) == Clock({P0: 1, P1: 5})
