"""Tests of `check` with topologies: it accepts correct windows, finds wrong results, and lists what it skipped."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import hmb.hailstorm
from hmb.client import ConsumerRecord
from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.checking import check, late_records
from hmb.hailstorm.errors import TopologyError
from hmb.hailstorm.monoids import MapOf, Mean, Sessions, Sliding, Sum, Tumbling
from hmb.hailstorm.monoids.windows import WindowsOf
from hmb.hailstorm.reference import load_topology
from hmb.hailstorm.simulation import Simulation
from hmb.hailstorm.sink import Sink
from hmb.hailstorm.spout import Spout
from hmb.hailstorm.topology import Topology
from tests.hailstorm import topologies
from tests.hailstorm.test_windows import timed, timed_logs, topology

LONG_BEFORE = 25  # ms; windows last 20 ms, so a tuple whose time is lowered by 25 ms can miss its window


def test_the_module_and_the_function_have_different_names() -> None:
    """The module `checking` and the function `check` have different names.

    If both had the name `check`, the function would hide the module in the package `hmb.hailstorm`.
    """
    module = importlib.import_module("hmb.hailstorm.checking")
    assert isinstance(hmb.hailstorm.checking, ModuleType) and hmb.hailstorm.check is module.check


# -- windows


@pytest.mark.parametrize(
    "windows", [Tumbling(20, MapOf(Sum())), Sliding(40, 20, MapOf(Sum())), Sessions(6, Sum())], ids=["t", "sl", "se"]
)
def test_windows_that_are_dropped_at_different_moments_are_no_problem(windows: WindowsOf) -> None:
    logs = timed_logs(0, partitions=4)
    runs = [Simulation(topology(windows), logs, order).run() for order in range(6)]
    assert any(run.states != runs[0].states for run in runs), "the runs must end with different open windows"
    assert check(topology(windows), logs) == []


def running_counts(windows: WindowsOf) -> Topology:
    """Return a topology whose bolt `window` has results that depend on the order in which tuples arrive.

    The bolt `count` sends 1 for the first tuple of a word, 2 for the second, and so on. The bolt `window` adds these
    numbers.
    """
    made = Topology("running")
    made.spout("words", Spout("words", timed, event_time=lambda item: item[1], allowed_lateness=10))
    count = Bolt.keyed(
        Sum(), lambda item: item[0], lambda item: 1, lambda item, counts: [(*item, counts[item[0]])]
    )
    made.bolt("count", count, after="words", parallelism=2)
    summed = Bolt.windowed(windows, lambda item: item[1], lambda item: item[0], lambda item: item[2])
    made.bolt("window", summed, after="count", parallelism=2)
    return made


@pytest.mark.parametrize("windows", [Tumbling(20, MapOf(Sum())), Sessions(6, Sum())], ids=["tumbling", "sessions"])
def test_a_window_over_running_values_is_named(windows: WindowsOf) -> None:
    (problem,) = check(running_counts(windows), timed_logs(1))
    assert problem.startswith("window: its state depends on the order in which tuples arrive: [")
    assert "It follows count, whose running values" in problem


def test_a_time_before_the_event_time_of_the_spout_is_named() -> None:
    """`check` reports a bolt that assigns earlier times to tuples than the spout does.

    A bolt closes its windows of 20 ms by the times of the spout. But to select the window of a tuple, this bolt uses a
    time that is 25 ms earlier. The window may already be closed, so the results depend on the order of the tuples.
    """
    made = topology(Tumbling(20, MapOf(Sum())))
    del made.nodes["window"], made.nodes["out"]
    early = Bolt.windowed(
        Tumbling(20, MapOf(Sum())), lambda item: item[1] - LONG_BEFORE, lambda item: item[0], lambda item: 1
    )
    made.bolt("window", early, after="words", parallelism=2)
    (problem,) = check(made, timed_logs(2, count=60))
    assert problem.startswith("window: its results depend on the order") and "event_time" in problem


def means_of_means() -> Topology:
    """Return a topology with two bolts: `mean` sends means, and `again` computes the mean of these means.

    The state of the bolt `again` contains an exact sum: an int of more than 300 digits.
    """
    made = Topology("means")
    made.spout("words", Spout("words", lambda record: (record.value.decode(), 0.1 * record.offset)))
    mean = Bolt.keyed(
        Mean(),
        key=lambda item: item[0],
        value=lambda item: item[1],
        transform=lambda item, means: [(item[0], Mean().result(means[item[0]]))],
    )
    made.bolt("mean", mean, after="words")
    made.bolt("again", Bolt.keyed(Mean(), lambda item: item[0], lambda item: item[1]), after="mean")
    return made


def test_a_message_shows_results_and_no_number_of_300_digits() -> None:
    (problem,) = check(means_of_means(), topologies.word_logs(5))
    assert problem.startswith("again: its state depends on the order in which tuples arrive: [")
    assert len(problem) < 500 and not re.search(r"\d{25}", problem)


# -- many records


@pytest.mark.parametrize(("partitions", "count"), [(2, 400), (4, 80)])
def test_many_records_need_no_more_steps(partitions: int, count: int) -> None:
    logs = timed_logs(0, partitions, count)
    assert check(topology(Tumbling(20, MapOf(Sum()))), logs) == []


# -- nothing was checked


def words(convert: Callable[[ConsumerRecord], Any]) -> Topology:
    made = Topology("words")
    made.spout("lines", Spout("words", convert))
    made.bolt("split", Bolt.stateless(lambda line: line.split("=")[1:]), after="lines", group=str)
    made.bolt("count", Bolt.keyed(Sum(), str, lambda word: 1), after="split")
    made.sink("out", Sink(print), after="count")
    return made


def text(record: ConsumerRecord) -> str:
    return record.value.decode()


def test_an_empty_topic_is_a_problem() -> None:
    (problem,) = check(words(text), {"words": [[], []]})
    assert problem.startswith("lines: nothing was checked, because the topic words has no records. A run would wait")


def test_records_that_are_all_left_out_are_a_problem() -> None:
    (problem,) = check(words(lambda record: None), {"words": [[topologies.record("words", 0, 0, "a=b")]]})
    assert problem == "lines: nothing was checked: `convert` returned no tuple for any of the 1 records"


def test_a_convert_that_sends_all_records_to_the_dead_letters_is_a_problem() -> None:
    topology = Topology("numbers")
    topology.spout("lines", Spout("words", lambda record: int(record.value), dead_letters="dead"))
    topology.sink("out", Sink(print), after="lines")
    (problem,) = check(topology, {"words": [[topologies.record("words", 0, 0, "one")]]})
    assert "no tuple for any of the 1 records. It raised ValueError: invalid literal" in problem


def test_a_bolt_that_no_tuple_reaches_is_a_problem() -> None:
    (problem,) = check(words(text), {"words": [[topologies.record("words", 0, 0, "nothing")]]})
    assert problem == "count: it was not checked, because split sent no tuple to it. Use more records"
    assert check(words(text), {"words": [[topologies.record("words", 0, 0, "a=b")]]}) == []


# -- functions that remember earlier tuples


def remembering(kind: str) -> Topology:
    """Return a topology with one function that counts each word in a variable outside of the function.

    If `kind` is "convert", the spout calls this function. If `kind` is "numbered" or "once", a stateless bolt calls it.
    """
    known: dict[str, int] = {}

    def numbered(word: str) -> list[tuple[str, int]]:
        known[word] = known.get(word, 0) + 1
        return [(word, known[word])]

    def once(word: str) -> list[tuple[str, int]]:
        return [pair for pair in numbered(word) if pair[1] == 1]

    made = Topology("remembering")
    convert = (lambda record: numbered(text(record))[0]) if kind == "convert" else text
    made.spout("words", Spout("words", convert))
    bolts = {"convert": lambda item: [item], "numbered": numbered, "once": once}
    made.bolt("plain", Bolt.stateless(bolts[kind]), after="words")
    return made


@pytest.mark.parametrize("kind", ["convert", "numbered", "once"])
def test_a_function_that_remembers_earlier_tuples_is_named(kind: str) -> None:
    (problem,) = check(remembering(kind), topologies.word_logs(5))
    name = "words: convert" if kind == "convert" else "plain: transform"
    assert problem.startswith(f"{name} is not pure: its second call returns another value, for ")


# -- groupings


def by_city(bolt: Bolt, **options: Any) -> Topology:
    made = Topology("cities")
    made.spout("rows", Spout("words", lambda record: tuple(text(record).split("="))))
    made.bolt("count", bolt, after="rows", parallelism=2, **options)
    return made


ROWS = {"words": [[topologies.record("words", 0, n, row) for n, row in enumerate(("a=x", "b=x", "a=y"))]]}


def per_city(**options: Any) -> Bolt:
    return Bolt.keyed(Sum(), key=lambda row: row[1], value=lambda row: 1, **options)


@pytest.mark.parametrize(
    "bolt",
    [
        per_city(),
        per_city(combine=True),
        Bolt(lambda row, counts: [], dict, MapOf(Sum()).merge, lambda row: {row[1]: 1}),
        Bolt.over(MapOf(Sum()), lambda row, counts: [], lambda row: {row[1]: 1}),
    ],
    ids=["keyed", "combining", "functions", "map"],
)
def test_a_grouping_that_separates_a_key_is_named(bolt: Bolt) -> None:
    (problem,) = check(by_city(bolt, group=lambda row: row[0]), ROWS)
    assert problem.startswith("count: its grouping is not the key of its state: the tuples ('a', 'x') and ('b', 'x')")
    assert "have the key 'x'" in problem and "without `group`" in problem


def test_the_key_of_a_bolt_is_its_grouping_by_default() -> None:
    made = by_city(per_city())
    assert made.nodes["count"].group(("a", "x")) == "x"
    assert check(made, ROWS) == []


def test_a_coarser_grouping_than_the_key_is_no_problem() -> None:
    pairs = Bolt.keyed(Sum(), key=lambda row: row, value=lambda row: 1)
    assert check(by_city(pairs, group=lambda row: row[1]), ROWS) == []


def test_a_grouping_that_raises_is_named() -> None:
    (problem,) = check(by_city(per_city(), group=lambda row: row[2]), ROWS)
    assert problem.startswith("cities does not run: count: group raised IndexError for a tuple of words-0 at offsets")


# -- event times


def test_many_late_records_are_a_problem() -> None:
    logs = timed_logs(0)
    assert check(topology(Tumbling(20, MapOf(Sum())), lateness=30), logs) == []
    assert late_records(topology(Tumbling(20, MapOf(Sum())), lateness=30), logs) == {}
    some = late_records(topology(Tumbling(20, MapOf(Sum())), lateness=8), logs)
    assert 0 < some["words"] < 20 and check(topology(Tumbling(20, MapOf(Sum())), lateness=8), logs) == []
    (problem,) = check(topology(Tumbling(20, MapOf(Sum())), lateness=0), logs)
    assert re.fullmatch(r"words: \d+ of 80 records are late .*`allowed_lateness` is 0 ms; .*not seconds", problem)


def test_an_event_time_that_is_no_number_is_named() -> None:
    made = Topology("late")
    made.spout("words", Spout("words", timed, event_time=lambda item: str(item[1])))  # type: ignore[arg-type, return-value]
    made.sink("out", Sink(print), after="words")
    (problem,) = check(made, timed_logs(0))
    assert re.search(r"words-\d: event_time returned '-?\d+' \(str\) for the record of words-\d at offset 0", problem)


def test_a_function_that_needs_arguments_is_no_topology() -> None:
    message = "json:dumps is a function that needs arguments: use the name of a Topology"
    with pytest.raises(TopologyError, match=message):
        load_topology("json:dumps")
