"""Tests that `check` finds incorrect merges, impure functions, and bolts whose results depend on the tuples' order."""

from __future__ import annotations

from typing import Any

import pytest

from hmb.client import ConsumerRecord
from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.checking import check
from hmb.hailstorm.monoids import FloatSum, MapOf, Mean, Newest, Sum, TopN
from hmb.hailstorm.sink import Sink
from hmb.hailstorm.spout import Spout
from hmb.hailstorm.topology import Topology
from tests.hailstorm import topologies

PAIRS = [("sun", 1), ("fog", 2), ("rain", 3), ("sun", 5)]


def merged(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    return {word: a.get(word, 0) + b.get(word, 0) for word in {**a, **b}}


def pair_bolt(**changes: Any) -> Bolt:
    functions: dict[str, Any] = {
        "transform": lambda pair, counts: [(pair[0], counts[pair[0]])],
        "empty": dict,
        "merge": merged,
        "lift": lambda pair: {pair[0]: pair[1]},
    }
    return Bolt(**{**functions, **changes})


def test_the_papers_bolt_has_no_problem() -> None:
    assert check(pair_bolt(), PAIRS) == []


def test_a_stateless_bolt_has_no_problem() -> None:
    assert check(Bolt.stateless(lambda item: [item]), PAIRS) == []


def last_wins(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    return {**a, **b}


def trimmed_sum(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    return dict(sorted(merged(a, b).items(), key=lambda pair: (-pair[1], pair[0]))[:1])


def in_place(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    for word, count in b.items():
        a[word] = a.get(word, 0) + count
    return a


def without_identity(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    return {**merged(a, b), "merges": 1}


@pytest.mark.parametrize(
    ("merge", "problem"),
    [
        (last_wins, "merge is not commutative: merge(a, b) = {"),
        (trimmed_sum, "merge is not associative: merge(merge(a, b), c) = {"),
        (in_place, "merge changes its arguments"),
        (without_identity, "empty is not the identity of merge: merge(empty, a) = {"),
    ],
)
def test_a_broken_law_is_named_with_a_counterexample(merge: Any, problem: str) -> None:
    assert any(found.startswith(problem) for found in check(pair_bolt(merge=merge), PAIRS))


def test_a_sum_of_floats_is_not_associative_and_float_sum_is() -> None:
    floats = [("a", 0.1), ("a", 0.2), ("a", 0.3), ("a", 1e16)]
    plain = Bolt.keyed(Sum(), key=lambda pair: pair[0], value=lambda pair: pair[1])
    exact = Bolt.keyed(FloatSum(), key=lambda pair: pair[0], value=lambda pair: pair[1])
    assert any("not associative" in problem for problem in check(plain, floats))
    assert check(exact, floats) == []


def test_a_state_that_the_codec_does_not_know_is_named() -> None:
    bolt = pair_bolt(lift=lambda pair: {pair[0]: complex(pair[1])})
    assert "cannot store a complex" in check(bolt, PAIRS)[0]


def test_a_transform_that_changes_the_state_is_named() -> None:
    def transform(pair: tuple[str, int], counts: dict[str, int]) -> list[Any]:
        counts["seen"] = counts.get("seen", 0) + 1
        return []

    problems = check(pair_bolt(transform=transform), PAIRS)
    assert any(problem.startswith("transform changes the state") for problem in problems)


def test_a_transform_that_raises_is_named() -> None:
    problems = check(pair_bolt(transform=lambda pair, counts: [counts["snow"]]), PAIRS)
    assert any(problem.startswith("transform raised KeyError") for problem in problems)


def test_a_transform_that_is_not_pure_is_named() -> None:
    calls: list[int] = []

    def transform(pair: tuple[str, int], counts: dict[str, int]) -> list[Any]:
        calls.append(1)
        return [len(calls)]

    assert any(problem.startswith("transform is not pure") for problem in check(pair_bolt(transform=transform), PAIRS))


def test_a_lift_that_returns_a_shared_state_is_named() -> None:
    shared: dict[str, Any] = {"words": {}}
    bolt = Bolt.over(MapOf(MapOf(Sum())), lambda item, state: [], lift=lambda item: {"words": shared["words"]})
    shared["words"]["sun"] = 1
    assert any(problem.startswith("lift is not pure") for problem in check(bolt, PAIRS))


# -- topologies


def reading(record: ConsumerRecord) -> tuple[str, int]:
    word = record.value.decode()
    return word, (len(word) * 7 + record.offset * 3 + record.partition) % 23


def mean_topology(after_mean: Bolt) -> Topology:
    """Return a topology whose first bolt computes means. The bolt `after_mean` receives (word, count, mean)."""
    topology = Topology("means")
    topology.spout("words", Spout("words", reading))
    mean = Mean()
    with_count = Bolt.keyed(
        mean,
        key=lambda pair: pair[0],
        value=lambda pair: pair[1],
        transform=lambda pair, states: [(pair[0], states[pair[0]][1], mean.result(states[pair[0]]))],
    )
    topology.bolt("mean", with_count, after="words", parallelism=2)
    topology.bolt("ranking", after_mean, after="mean")
    topology.sink("console", Sink(print), after="ranking")
    return topology


def test_the_trending_topology_has_no_problem() -> None:
    assert check(topologies.trending(), topologies.word_logs(3)) == []


def test_the_sinks_of_a_topology_are_not_called() -> None:
    written: list[Any] = []
    check(topologies.trending(written.append), topologies.word_logs(3))
    assert written == []


def test_a_top_n_by_a_running_mean_is_named() -> None:
    """`check` reports a top-n bolt that ranks words by their current means. A mean can still rise or fall.

    For each tuple, the bolt `mean` sends the new mean of a word. The bolt `ranking` keeps the greatest mean of each
    word, so the state of this bolt depends on the order of the tuples.
    """
    top = Bolt.over(TopN(3), lambda item, state: [("top", 1)], lift=lambda item: {item[0]: item[2]})
    (problem,) = check(mean_topology(top), topologies.word_logs(5))
    assert problem.startswith("ranking: its state depends on the order in which tuples arrive")
    assert "It follows mean, whose running values" in problem and "Newest" in problem


def test_the_newest_mean_by_its_count_is_exact() -> None:
    newest = Bolt.over(
        MapOf(Newest()), lambda item, state: [("top", 1)], lift=lambda item: {item[0]: (item[1], item[2])}
    )
    assert check(mean_topology(newest), topologies.word_logs(5)) == []


def test_a_convert_that_raises_is_reported() -> None:
    topology = Topology("broken")
    topology.spout("words", Spout("words", lambda record: int(record.value)))
    topology.sink("console", Sink(print), after="words")
    (problem,) = check(topology, topologies.word_logs(5))
    assert problem.startswith("broken does not run: words-")
    assert "convert raised ValueError for the record of" in problem
