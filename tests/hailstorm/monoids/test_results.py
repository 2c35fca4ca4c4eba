"""Tests of results that are computed from states: means, minimum and maximum, estimates and windows."""

from __future__ import annotations

import math
import random
import statistics
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.hailstorm.monoids import (
    CountMin,
    FloatSum,
    HyperLogLog,
    MapOf,
    Mean,
    Monoid,
    Newest,
    Quantiles,
    Sessions,
    Sliding,
    Sum,
    TopN,
    Tumbling,
)
from hmb.hailstorm.monoids.windows import SessionList, session_at


def state_of(monoid: Monoid[Any], values: Any) -> Any:
    return reduce(monoid.absorb, map(monoid.lift, values), monoid.empty())


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1))
def test_sums_and_means_of_floats_are_rounded_once(values: list[float]) -> None:
    total = FloatSum()
    assert total.result(state_of(total, values)) == math.fsum(values)
    mean = Mean()
    assert mean.result(state_of(mean, values)) == pytest.approx(statistics.fmean(values), rel=1e-15)


def test_the_mean_of_nothing_is_none() -> None:
    assert Mean().result(Mean().empty()) is None


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_float_without_a_value_is_refused(value: float) -> None:
    for monoid in (Mean(), FloatSum(), Quantiles()):
        with pytest.raises(ValueError, match="leave it out"):
            monoid.lift(value)


def test_newest_takes_the_highest_version() -> None:
    newest = Newest()
    assert newest.result(state_of(newest, [(2, "b"), (7, "g"), (3, "c")])) == "g"
    assert newest.result(newest.empty()) is None


def test_top_n_keeps_the_largest_and_orders_them() -> None:
    top = TopN(2)
    assert top.result(state_of(top, [("a", 1), ("b", 5), ("c", 3), ("a", 4)])) == [("b", 5), ("a", 4)]
    with pytest.raises(ValueError, match="at least 1"):
        TopN(0)


def test_top_n_of_equal_values_does_not_depend_on_the_order() -> None:
    pairs = [(word, 1) for word in "abcdef"]
    assert state_of(TopN(3), pairs) == state_of(TopN(3), reversed(pairs))


@pytest.mark.parametrize("count", [0, 10, 1_000, 20_000])
def test_hyperloglog_counts_different_values(count: int) -> None:
    sketch = HyperLogLog()
    state = state_of(sketch, [number % max(count, 1) for number in range(2 * count)])
    assert sketch.result(state) == pytest.approx(count, rel=4 * 1.04 / math.sqrt(2**12))


def test_count_min_never_counts_too_little() -> None:
    chance = random.Random(1)
    values = [int(chance.paretovariate(1)) % 500 for _ in range(5_000)]
    sketch = CountMin(width=256, depth=4)
    state = state_of(sketch, values)
    for value in set(values):
        assert values.count(value) <= sketch.estimate(state, value) <= values.count(value) + 5_000 * math.e / 256
    assert sketch.estimate(state, "never seen") <= 5_000 * math.e / 256


def test_quantiles_are_within_their_relative_error() -> None:
    chance = random.Random(2)
    values = [chance.lognormvariate(0, 2) * chance.choice([-1, 1, 1]) for _ in range(4_000)] + [0.0] * 10
    sketch = Quantiles(0.02)
    state = state_of(sketch, values)
    exact = sorted(values)
    for q in (0, 0.01, 0.25, 0.5, 0.9, 0.99, 1):
        assert sketch.quantile(state, q) == pytest.approx(exact[int(q * (len(exact) - 1))], rel=0.021)
    assert sketch.quantile({}, 0.5) is None


@pytest.mark.parametrize(
    "make", [lambda: HyperLogLog(3), lambda: CountMin(0), lambda: Quantiles(1.0), lambda: Sliding(5, 10, Sum())]
)
def test_impossible_parameters_are_refused(make: Any) -> None:
    with pytest.raises(ValueError, match="not"):
        make()


def test_tumbling_windows_follow_each_other() -> None:
    hours = Tumbling(60, MapOf(Sum()))
    state = state_of(hours, [(0, ("a", 1)), (59, ("a", 1)), (60, ("a", 1)), (-1, ("b", 1))])
    assert state == {0: {"a": 2}, 60: {"a": 1}, -60: {"b": 1}}
    assert hours.expire(state, 60) == {60: {"a": 1}}
    assert hours.expire(state, 59) == {0: {"a": 2}, 60: {"a": 1}}


@given(st.integers(-1000, 1000), st.integers(1, 50), st.integers(1, 50))
def test_sliding_windows_are_all_that_contain_a_time(time: int, step: int, more: int) -> None:
    windows = Sliding(step + more, step, Sum())
    expected = {start for start in range(-3000, 3000) if start % step == 0 and start <= time < start + step + more}
    assert set(windows.starts(time)) == expected


def test_sliding_windows_do_not_share_a_state() -> None:
    windows = Sliding(20, 10, MapOf(MapOf(Sum())))
    state = state_of(windows, [(15, ("a", ("x", 1))), (15, ("a", ("x", 1)))])
    assert state == {10: {"a": {"x": 2}}, 0: {"a": {"x": 2}}}


def test_sessions_join_when_a_value_fills_the_gap() -> None:
    sessions = Sessions(10, Sum())
    apart = state_of(sessions, [(0, ("a", 1)), (15, ("a", 1)), (15, ("b", 1))])
    assert apart == {"a": [(0, 0, 1), (15, 15, 1)], "b": [(15, 15, 1)]}
    joined = sessions.merge(apart, sessions.lift((8, ("a", 1))))
    assert joined["a"] == [(0, 15, 3)]
    assert session_at(joined["a"], 12) == (0, 15, 3)
    assert sessions.expire(apart, 12) == {"a": [(15, 15, 1)], "b": [(15, 15, 1)]}
    with pytest.raises(KeyError):
        session_at(apart["a"], 12)


def test_a_view_of_sessions_shows_the_session_around_a_time_without_merging_the_lists() -> None:
    """A view of two lists of sessions shows the same sessions as the merged list.

    For example, the list `a` has a session at time 60, and the list `b` has a session at time 64. The distance is less
    than the gap of 10, so the view shows one session from 60 to 64. This session contains the time 62.
    """
    sessions = SessionList(10, Sum())
    a = state_of(sessions, [(0, 1), (20, 1), (60, 1), (100, 1)])
    b = state_of(sessions, [(9, 1), (14, 1), (64, 1), (140, 1)])
    view, merged = sessions.view(a, b), sessions.merge(a, b)
    for time in (0, 9, 12, 14, 20, 60, 62, 64, 100, 140):
        assert session_at(view, time) == session_at(merged, time)
    with pytest.raises(KeyError):
        session_at(view, 90)
    assert view == merged and list(view) == merged and len(view) == 4


def test_a_tuple_is_added_to_many_sessions_without_reading_them_all() -> None:
    """`absorb` adds a tuple to a list of sessions in place, and reads only a few of the sessions.

    If the method read the whole list for each of the 2000 tuples, it would read about 2,000,000 sessions.
    """
    steps = 0

    class CountedSessions(list[Any]):
        def __getitem__(self, index: Any) -> Any:
            nonlocal steps
            steps += 1
            return super().__getitem__(index)

        def __iter__(self) -> Any:
            nonlocal steps
            steps += len(self)
            return super().__iter__()

    sessions = SessionList(10, Sum())
    counted = CountedSessions()
    state: Any = counted
    for number in range(2000):
        state = sessions.absorb(state, sessions.lift((number * 7919 % 2000 * 20, 1)))
        assert session_at(state, number * 7919 % 2000 * 20)[2] == 1
    assert state is counted and len(state) == 2000 and steps < 2000 * 50
