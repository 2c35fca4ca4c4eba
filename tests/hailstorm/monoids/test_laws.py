"""Tests of every monoid of the library: `merge` is associative and commutative, and has a neutral element.

The faster operations `absorb` and `view` have the same results as `merge`.
"""

from __future__ import annotations

import copy
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.hailstorm.codec import decode, encode
from hmb.hailstorm.monoids import (
    CountMin,
    FloatSum,
    FunctionMonoid,
    HyperLogLog,
    MapOf,
    Max,
    Mean,
    Min,
    Monoid,
    Newest,
    Quantiles,
    Sessions,
    SetOf,
    Sliding,
    Sum,
    TopN,
    Tumbling,
)

words = st.sampled_from(["sun", "fog", "rain", "snow"])
floats = st.floats(allow_nan=False, allow_infinity=False)
times = st.integers(0, 300)
MONOIDS: dict[str, tuple[Monoid[Any], st.SearchStrategy[Any]]] = {
    "sum": (Sum(), st.integers()),
    "float sum": (FloatSum(), floats),
    "mean": (Mean(), floats),
    "min": (Min(), st.integers() | st.none()),
    "max": (Max(), words),
    "set": (SetOf(), words),
    "map of sums": (MapOf(Sum()), st.tuples(words, st.integers())),
    "map of maps of sets": (MapOf(MapOf(SetOf())), st.tuples(words, st.tuples(words, times))),
    "newest": (Newest(), st.tuples(st.integers(0, 3), st.integers(0, 3))),
    "top 2": (TopN(2), st.tuples(words, st.integers(0, 9))),
    "hyperloglog": (HyperLogLog(4), st.integers()),
    "count-min": (CountMin(16, 2), words),
    "quantiles": (Quantiles(0.1), floats),
    "tumbling": (Tumbling(60, MapOf(Sum())), st.tuples(times, st.tuples(words, st.integers()))),
    "sliding": (Sliding(60, 20, MapOf(SetOf())), st.tuples(times, st.tuples(words, st.integers()))),
    "sessions": (Sessions(10, Sum()), st.tuples(times, st.tuples(words, st.integers()))),
    "sessions of sets": (Sessions(10, SetOf()), st.tuples(times, st.tuples(words, st.integers()))),
    "functions": (FunctionMonoid(lambda: 0, lambda a, b: a | b), st.integers(0, 255)),
}


def state_of(monoid: Monoid[Any], values: list[Any]) -> Any:
    return reduce(monoid.absorb, map(monoid.lift, values), monoid.empty())


@pytest.mark.parametrize("name", MONOIDS)
@given(data=st.data())
def test_the_laws(name: str, data: st.DataObject) -> None:
    monoid, values = MONOIDS[name]
    a, b, c = (state_of(monoid, data.draw(st.lists(values, max_size=5))) for _ in range(3))
    before = copy.deepcopy((a, b, c))
    merge = monoid.merge
    assert merge(monoid.empty(), a) == a == merge(a, monoid.empty())
    assert merge(a, b) == merge(b, a)
    assert merge(merge(a, b), c) == merge(a, merge(b, c))
    assert (a, b, c) == before, "merge must not change its arguments"


@pytest.mark.parametrize("name", MONOIDS)
@given(data=st.data())
def test_absorb_and_view_agree_with_merge(name: str, data: st.DataObject) -> None:
    monoid, values = MONOIDS[name]
    a, b = (state_of(monoid, data.draw(st.lists(values, max_size=5))) for _ in range(2))
    merged = monoid.merge(copy.deepcopy(a), copy.deepcopy(b))
    view = monoid.view(a, b)
    assert monoid.merge(monoid.empty(), view) == merged
    if isinstance(merged, dict):
        assert set(view) == set(merged) and len(view) == len(merged)
        assert all(key in view and view.get(key) is not None for key in merged if merged[key] is not None)
    assert monoid.absorb(copy.deepcopy(a), copy.deepcopy(b)) == merged


@pytest.mark.parametrize("name", MONOIDS)
@given(data=st.data())
def test_a_state_comes_back_from_a_snapshot(name: str, data: st.DataObject) -> None:
    monoid, values = MONOIDS[name]
    state = state_of(monoid, data.draw(st.lists(values, max_size=8)))
    assert monoid.from_value(decode(encode(monoid.to_value(state)))) == state


@pytest.mark.parametrize("name", MONOIDS)
@given(data=st.data())
def test_a_state_does_not_depend_on_the_order_and_the_grouping_of_its_values(name: str, data: st.DataObject) -> None:
    monoid, values = MONOIDS[name]
    items = data.draw(st.lists(values, max_size=8))
    shuffled = data.draw(st.permutations(items))
    cut = data.draw(st.integers(0, len(items)))
    halves = monoid.merge(state_of(monoid, shuffled[:cut]), state_of(monoid, shuffled[cut:]))
    assert halves == state_of(monoid, items)
