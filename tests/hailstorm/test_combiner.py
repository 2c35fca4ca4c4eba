"""Tests of the combiner, which merges the tuples with the same key in a batch.

With and without a combiner, a bolt must reach the same state.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from hmb.client import TopicPartition
from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.checking import check
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.codec import decode, encode
from hmb.hailstorm.errors import TopologyError, UserCodeError
from hmb.hailstorm.monoids import HyperLogLog, SetOf, Sum
from hmb.hailstorm.payload import Payloads
from hmb.hailstorm.processors.bolts import BoltMachine
from hmb.hailstorm.processors.combiner import combine
from hmb.hailstorm.processors.emitter import Emitter
from hmb.hailstorm.runners import run
from hmb.hailstorm.sink import HeldBackSink, IdempotentSink, Sink
from hmb.hailstorm.spout import Spout
from hmb.hailstorm.topology import Processors, Topology
from tests.hailstorm import topologies
from tests.hailstorm.simulations import run_combining
from tests.hailstorm.topologies import WORDS, count_bolt

P0, P1 = TopicPartition("words", 0), TopicPartition("words", 1)
START = Clock({P0: 0, P1: 0})
BATCH = ["sun", "fog", "sun", "sun"]  # at offsets 7 to 10


def words(bolt: Bolt, *sinks: Any, group: Any = str) -> Topology:
    topology = Topology("words")
    topology.spout("words", Spout("words"))
    topology.bolt("count", bolt, after="words", parallelism=2, group=group)
    for number, sink in enumerate(sinks):
        topology.sink(f"out{number}", sink, after="count")
    return topology


def counting(**options: Any) -> Bolt:
    return Bolt.keyed(Sum(), key=str, value=lambda word: 1, **options)


def sent(bolt: Bolt, tuples: list[Any]) -> dict[str, Payloads]:
    """Return the payloads that a spout sends to each instance of `bolt` for the list `tuples`.

    The keys of the dictionary are the names of the instances. The first tuple has offset 7, and the next one offset 8.
    """
    processors = Processors(words(bolt), {"words": [0, 1]})
    emitter = Emitter(processors, processors.named("words-0"), 1)
    offsets = list(range(7, 7 + len(tuples)))
    emitter.emit(("words",), P0, Clock({P0: offsets[-1] + 1}), {}, tuples, offsets)
    return dict(emitter.outbox)


def test_a_batch_becomes_one_row_for_each_key_at_its_last_offset() -> None:
    both = sent(counting(combine=True), BATCH)
    rows = [(offset, row) for each in both.values() for offset, row in zip(each.offsets, each.tuples, strict=True)]
    assert sorted(rows) == [(10, ("fog", 1)), (10, ("sun", 3))]
    assert both.keys() == {"count-0", "count-1"}
    assert all(each.mark[P0] == 11 and each.numbers is None for each in both.values())


def test_a_key_goes_to_the_same_instance_with_and_without_a_combiner() -> None:
    tuples = [random.Random(5).choice(WORDS) + str(n % 7) for n in range(100)]
    plain, combined = sent(counting(), tuples), sent(counting(combine=True), tuples)
    for receiver, payloads in combined.items():
        assert {key for key, _ in payloads.tuples} == set(plain[receiver].tuples)


def test_the_bolt_sends_the_last_running_value_of_each_key() -> None:
    bolt = counting(combine=True)
    processors = Processors(words(bolt, Sink(print)), {"words": [0, 1]})
    receiver, payloads = next((name, it) for name, it in sent(bolt, BATCH).items() if ("sun", 3) in it.tuples)
    machine = BoltMachine(processors, processors.named(receiver), 1, START)
    machine.restore([{"sun": 100}, 0, 0])
    machine.receive(Payloads(1, *_columns(payloads)))
    (_, outputs), = machine.outbox
    assert ("sun", 103) in outputs.tuples
    assert machine.state.a["sun"] == 103


def _columns(payloads: Payloads) -> tuple[Any, ...]:
    return payloads.sender, payloads.path, payloads.partition, payloads.mark, payloads.tuples, payloads.offsets


@pytest.mark.parametrize("monoid", [SetOf(), HyperLogLog()])
def test_states_that_need_a_conversion_travel_as_values_of_the_codec(monoid: Any) -> None:
    bolt = Bolt.keyed(monoid, key=lambda pair: pair[0], value=lambda pair: pair[1], combine=True)
    assert bolt.combining is not None
    pairs = [("a", 1), ("a", 2), ("b", 1)]
    payloads = Payloads(1, "words-0", ("words",), P0, Clock({P0: 3}), pairs, [0, 1, 2])
    combined, firsts = combine(payloads, bolt.combining, "count")
    arrived = Payloads.from_value(decode(encode(combined.to_value())))
    state = bolt.monoid.from_value(dict(arrived.tuples))
    expected = bolt.monoid.empty()
    for pair in pairs:
        expected = bolt.monoid.absorb(expected, bolt.lift(pair))
    assert bolt.monoid.to_value(state) == bolt.monoid.to_value(expected)
    assert firsts == [("a", 1), ("b", 1)]


def test_an_own_transform_receives_the_key() -> None:
    seen = []

    def send(key: str, counts: Any) -> list[Any]:
        seen.append(key)
        return [(key, counts[key] * 10)]

    bolt = counting(transform=send, combine=True)
    assert bolt.transform("sun", {"sun": 2}) == [("sun", 20)], "without a sender that combines, as on Spark"
    assert seen == ["sun"]


def test_an_error_in_the_users_code_is_named_with_its_origin() -> None:
    bolt = Bolt.keyed(Sum(), key=str, value=lambda word: 1 if word == "sun" else {}["no value"], combine=True)
    functions = r"one of the user's functions \(key, value, lift or merge\)"
    with pytest.raises(UserCodeError, match=rf"count: {functions} .*'fog' from words-0 at offset 8"):
        sent(bolt, BATCH)


def test_an_idempotent_sink_cannot_follow() -> None:
    topology = words(counting(combine=True), IdempotentSink(print))
    with pytest.raises(TopologyError, match="out0 is an IdempotentSink after count, a bolt with combine=True"):
        topology.in_order()


def test_an_idempotent_sink_cannot_follow_at_a_distance() -> None:
    topology = words(counting(combine=True))
    topology.bolt("plain", Bolt.stateless(lambda item: [item]), after="count")
    topology.sink("rows", IdempotentSink(print), after="plain")
    with pytest.raises(TopologyError, match="rows is an IdempotentSink after count"):
        topology.in_order()


def test_an_idempotent_sink_can_follow_another_path() -> None:
    topology = words(counting(combine=True), HeldBackSink(lambda items, clock: None))
    topology.sink("rows", IdempotentSink(print), after="words")
    assert len(topology.in_order()) == 4


def test_check_compares_the_runs_with_and_without_a_combiner() -> None:
    """`check` reports a bolt whose state depends on whether the topology uses a combiner.

    For three equal words in a batch, the bolt `count` sends the counts 1, 2 and 3. With a combiner, it sends only the
    count 3. The next bolt adds up the counts that it receives, so its sum is 6 or 3.
    """
    logs = topologies.word_logs(3, with_gaps=False)
    assert check(topologies.trending(combine=True), logs) == []
    topology = topologies.trending(combine=True)
    topology.bolt("adds", count_bolt(), after="count")
    assert any(problem.startswith("adds: its state depends on the order") for problem in check(topology, logs))


@pytest.mark.parametrize("seed", range(40))
def test_snapshots_are_exact_with_crashes(seed: int) -> None:
    assert run_combining(seed, crashes=seed % 4).snapshots


def test_a_run_against_a_broker(servers: str, make_topic: Callable[..., str]) -> None:
    chance = random.Random(1)
    logs = [[chance.choice(WORDS).encode() for _ in range(3000)] for _ in range(2)]
    written: dict[str, int] = {}
    topology = Topology("words")
    topology.spout("words", Spout(make_topic(logs)))
    topology.bolt("count", counting(combine=True), after="words", parallelism=2, group=str)
    topology.sink("out", Sink(lambda pair: written.update([pair])), after="count")
    result = run(topology, servers, until="end", grace_period=0.02, poll_records=100)
    expected = {word: sum(log.count(word.encode()) for log in logs) for word in WORDS}
    assert result.states["count"] == written == expected
