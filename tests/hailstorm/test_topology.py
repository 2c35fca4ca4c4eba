"""Tests of topologies. An error message names the mistake. All processes choose the same bolt instance for a key."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from typing import Any
from zlib import crc32

import pytest

from hmb.client import TopicPartition
from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.codec import encode
from hmb.hailstorm.errors import TopologyError
from hmb.hailstorm.grouping import Router, first, instance_of, whole
from hmb.hailstorm.monoids import HyperLogLog, MapOf, Mean, Sessions, Sliding, Sum, TopN, Tumbling
from hmb.hailstorm.monoids.windows import WindowsOf
from hmb.hailstorm.sink import Sink
from hmb.hailstorm.spout import Spout
from hmb.hailstorm.topology import Processors, Topology
from tests.hailstorm.topologies import count_bolt, tracing, trending

P0, P1 = TopicPartition("words", 0), TopicPartition("words", 1)


def windowed(windows: WindowsOf, **options: Any) -> Bolt:
    return Bolt.windowed(windows, lambda item: item[1], lambda item: item[0], lambda item: 1, **options)


def minimal() -> Topology:
    topology = Topology("minimal")
    topology.spout("words", Spout("words"))
    return topology


def test_a_cycle_is_named() -> None:
    topology = minimal()
    topology.bolt("a", count_bolt(), after=["words", "c"])
    topology.bolt("b", count_bolt(), after="a")
    topology.bolt("c", count_bolt(), after="b")
    with pytest.raises(TopologyError, match=r"minimal has a cycle: b -> c -> a -> b"):
        topology.in_order()


@pytest.mark.parametrize(
    ("declare", "problem"),
    [
        (lambda it: it.bolt("count", count_bolt(), after="wrods"), "count comes after 'wrods', which does not exist"),
        (lambda it: it.bolt("count", count_bolt(), after=[]), "no node comes before count"),
        (lambda it: it.spout("again", Spout("words")), "two spouts of minimal read the topic 'words'"),
        (lambda it: it.spout("words", Spout("other")), "two nodes named 'words'"),
        (lambda it: it.bolt("a-b", count_bolt(), after="words"), "'a-b' is not a name for a node"),
        (lambda it: it.bolt("negotiator", count_bolt(), after="words"), "'negotiator' is not a name"),
        (
            lambda it: it.bolt("count", count_bolt(), after="words", parallelism=0),
            "the parallelism must be at least 1, not 0",
        ),
        (
            lambda it: it.sink("out", print, after="words"),
            r"is not a sink: to call a function with each tuple, use Sink\(function\)",
        ),
        (lambda it: it.bolt("count", Sink(print), after="words"), "a Sink is not a Bolt"),
        (lambda it: it.spout("s", count_bolt()), "a Bolt is not a Spout"),
        (
            lambda it: it.bolt("mean", windowed(Tumbling(7, MapOf(Mean()))), after="words"),
            r"mean has windows of event time, but the spout words has no event times.*Spout\(event_time=",
        ),
        (
            lambda it: it.bolt("mean", windowed(Tumbling(7, Mean())), after="words"),
            r"mean: Tumbling\(7, Mean\(\)\) has no place for the keys.* must be MapOf\(Mean\(\)\), a map",
        ),
        (
            lambda it: it.bolt("mean", windowed(Sliding(7, 1, HyperLogLog())), after="words"),
            r"must be MapOf\(HyperLogLog\(12\)\)",
        ),
        (
            lambda it: it.bolt("sum", windowed(Tumbling(7, Sum()), transform=lambda it, state: []), after="words"),
            r"must be MapOf\(Sum\(\)\)",
        ),
        (
            lambda it: it.bolt("sum", Bolt.over(Tumbling(7, MapOf(Sum())), lambda it, state: []), after="words"),
            r"sum: Tumbling\(7, MapOf\(Sum\(\)\)\) needs the time of each tuple: declare the bolt with Bolt.windowed",
        ),
    ],
)
def test_a_mistake_in_a_declaration_is_named(declare: Any, problem: str) -> None:
    topology = minimal()
    with pytest.raises(TopologyError, match=problem):
        declare(topology)
        topology.in_order()


def test_a_spout_without_event_times_is_found_through_other_nodes_and_later() -> None:
    topology = Topology("later")
    topology.bolt("mean", windowed(Sessions(7, Mean())), after="plain")
    topology.bolt("plain", Bolt.stateless(lambda item: [item]), after=["timed", "untimed"])
    topology.spout("timed", Spout("timed", event_time=lambda item: item[1]))
    with pytest.raises(TopologyError, match="mean has windows of event time, but the spout untimed has no event times"):
        topology.spout("untimed", Spout("untimed"))


def test_windows_of_other_states_need_a_transform_of_their_own() -> None:
    topology = Topology("top")
    topology.spout("words", Spout("words", event_time=lambda item: item[1]))
    topology.bolt("top", windowed(Tumbling(7, TopN(3)), transform=lambda item, state: []), after="words")
    topology.in_order()


def test_nothing_can_follow_a_sink() -> None:
    topology = minimal()
    topology.sink("out", Sink(print), after="words")
    topology.bolt("count", count_bolt(), after="out")
    with pytest.raises(TopologyError, match="count cannot come after out: out is a sink, and sinks send no tuples"):
        topology.in_order()


def test_a_topology_needs_a_spout_and_a_name() -> None:
    with pytest.raises(TopologyError, match="has no spout"):
        Topology("empty").in_order()
    with pytest.raises(TopologyError, match="is not a name for a topology"):
        Topology("two words")


def test_nodes_are_ordered_by_the_flow_not_by_the_declaration() -> None:
    topology = Topology("backwards")
    topology.sink("out", Sink(print), after="count")
    topology.bolt("count", count_bolt(), after="words")
    topology.spout("words", Spout("words"))
    assert [node.name for node in topology.in_order()] == ["words", "count", "out"]


def test_processors_have_their_names_and_partitions() -> None:
    processors = Processors(trending(), {"words": [0, 1]})
    expected = ["words-0", "words-1", "count-0", "count-1", "count-2", "topn-0", "topn-1", "console-0"]
    assert list(processors.by_name) == expected
    assert processors.partitions == {P0: "words-0", P1: "words-1"}
    with pytest.raises(TopologyError, match=r"no processor 'count-9'; it has words-0, .*console-0"):
        processors.named("count-9")


def test_a_partition_reaches_a_processor_through_those_that_carry_it() -> None:
    processors = Processors(tracing(), {"words": [0, 1]})
    assert processors.upstreams["first-0"] == {P0: {"words-0"}, P1: {"words-1"}}
    both_paths = {"first-0", "first-1", "plain-0", "plain-1"}
    assert processors.upstreams["second-2"] == {P0: both_paths, P1: both_paths}
    assert processors.upstreams["words-0"] == {}


def test_a_topic_reaches_only_what_follows_its_spout() -> None:
    topology = minimal()
    topology.spout("numbers", Spout("numbers"))
    topology.bolt("both", count_bolt(), after=["words", "numbers"])
    topology.sink("numbers_out", Sink(print), after="numbers")
    processors = Processors(topology, {"words": [0, 1], "numbers": [0]})
    assert processors.upstreams["numbers_out-0"] == {TopicPartition("numbers", 0): {"numbers-0"}}
    assert set(processors.upstreams["both-0"]) == {P0, P1, TopicPartition("numbers", 0)}


def test_a_grouping_is_the_same_in_every_process() -> None:
    keys = ["sun", ("a", 1), 7, b"x", 1.5, None]
    program = f"from hmb.hailstorm.grouping import instance_of; print([instance_of(k, 1000) for k in {keys!r}])"
    for seed in ("1", "2"):
        printed = subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        )
        assert printed.stdout.strip() == str([instance_of(key, 1000) for key in keys])


@pytest.mark.parametrize("length", [0, 1, 63, 64, 200])
def test_a_short_byte_string_has_the_instance_of_its_encoding(length: int) -> None:
    """If two tuples have the same short byte string as their key, all processes send them to the same bolt instance.

    The hash of the key's encoding chooses the instance. For a short byte string, a shortcut computes this hash without
    the encoding. The result must be the same.
    """
    key = b"x" * length
    assert instance_of(key, 2**31) == crc32(encode(key)) % 2**31


def test_keys_are_spread_over_the_instances() -> None:
    router = Router(first, 4)
    numbers = Counter(router.instances([(f"word-{n}", 1) for n in range(4000)]))
    assert set(numbers) == {0, 1, 2, 3} and min(numbers.values()) > 800


def test_an_unhashable_key_has_an_instance() -> None:
    assert Router(whole, 3).instances([[1, 2], [1, 2]]) == [instance_of([1, 2], 3)] * 2


def test_a_router_forgets_keys_before_it_grows_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hmb.hailstorm.grouping.REMEMBERED_KEYS", 10)
    router = Router(whole, 7)
    keys = [f"k{n}" for n in range(100)]
    assert router.instances(keys) == [instance_of(key, 7) for key in keys]
    assert len(router._instances) <= 10


def test_a_bolt_of_a_monoid_is_the_bolt_of_its_functions() -> None:
    bolt = count_bolt()
    assert bolt.lift(("sun", 2)) == {"sun": 2}
    assert bolt.transform(("sun", 2), {"sun": 5}) == [("sun", 5)]
    written = Bolt(bolt.transform, dict, bolt.monoid.merge, bolt.lift)
    assert written.monoid.merge({"a": 1}, {"a": 2}) == {"a": 3}
