"""Topologies and records that several tests use, and the answers that a batch job would give."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from hmb.client import ConsumerRecord, TopicPartition
from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.monoids import MapOf, Sum, TopN
from hmb.hailstorm.sink import HeldBackSink, IdempotentSink, Sink
from hmb.hailstorm.spout import Spout
from hmb.hailstorm.topology import Topology
from hmb.records.record import TimestampType

WORDS = ["sun", "fog", "rain", "snow", "wind", "hail"]
Logs = Mapping[str, Sequence[Sequence[ConsumerRecord]]]


def record(topic: str, partition: int, offset: int, value: str, timestamp: int = 0) -> ConsumerRecord:
    return ConsumerRecord(
        topic, partition, offset, timestamp, TimestampType.CREATE_TIME, None, value.encode(), ()
    )


def word_logs(seed: int, most: int = 20, *, with_gaps: bool = True) -> Logs:
    """Return random words in 2 or 3 partitions of the topic `words`.

    The last partition is short or empty, and some offsets have no record.
    """
    chance = random.Random(seed)
    logs = []
    partitions = 2 + seed % 2
    for partition in range(partitions):
        count = chance.randint(0, 3) if partition == partitions - 1 else chance.randint(most // 2, most)
        offsets, offset = [], 0
        for _ in range(count):
            offset += chance.choice([0, 0, 0, 1, 2]) if with_gaps else 0
            offsets.append(offset)
            offset += 1
        logs.append([record("words", partition, offset, chance.choice(WORDS)) for offset in offsets])
    return {"words": logs}


def words_below(logs: Logs, clock: Clock | None = None) -> list[str]:
    """Return the words of the records below the offsets in `clock`. If `clock` is None, return all words."""
    return [
        each.value.decode()
        for log in logs["words"]
        for each in log
        if clock is None or clock.includes(TopicPartition(each.topic, each.partition), each.offset)
    ]


def counts(logs: Logs, clock: Clock | None = None) -> dict[str, int]:
    return dict(Counter(words_below(logs, clock)))


def top(n: int, values: Mapping[str, int]) -> dict[str, int]:
    monoid = TopN(n)
    return monoid.absorb({}, dict(values))


def word_pair(each: ConsumerRecord) -> tuple[str, int]:
    return each.value.decode(), 1


def count_bolt(*, combine: bool = False) -> Bolt:
    return Bolt.keyed(Sum(), key=lambda pair: pair[0], value=lambda pair: pair[1], combine=combine)


def trending(
    write: Callable[[Any], object] = lambda item: None, n: int = 3, *, combine: bool = False
) -> Topology:
    """Return the Hailstorm paper's example: words -> count -> top n -> sink. It has two stateful bolts in a row."""
    topology = Topology("trending")
    topology.spout("words", Spout("words", word_pair))
    topology.bolt("count", count_bolt(combine=combine), after="words", parallelism=3)
    local_top = Bolt.over(TopN(n), transform=lambda pair, state: [("top", tuple(sorted(state.items())))])
    topology.bolt("topn", local_top, after="count", parallelism=2)
    topology.sink("console", Sink(write), after="topn")
    return topology


def origin_of(each: ConsumerRecord) -> tuple[str, tuple[int, int]]:
    return each.value.decode(), (each.partition, each.offset)


def copies(item: tuple[str, tuple[int, int]]) -> Iterable[tuple[str, tuple[int, int]]]:
    """Return zero, one or two copies of a tuple. The partition and offset of its record decide how many."""
    return [item] * ((item[1][0] + item[1][1]) % 3)


def tracing(
    write: Callable[[Sequence[Any], Clock], object] = lambda items, clock: None,
    write_at_once: Callable[[Any, Any], object] = lambda name, item: None,
) -> Topology:
    """Return a topology with two paths from the spout to the bolt `second`: through the bolt `first` or `plain`.

    The bolt `plain` has no state. All bolts except `plain` count the tuples that they receive from each record. The
    partition and the offset identify a record.
    """

    def origins(transform: Callable[[Any, Any], Iterable[Any]]) -> Bolt:
        return Bolt.over(MapOf(Sum()), transform, lift=lambda item: {item[1]: 1})

    topology = Topology("tracing")
    topology.spout("words", Spout("words", origin_of))
    topology.bolt("first", origins(lambda item, state: copies(item)), after="words", parallelism=2)
    topology.bolt("plain", Bolt.stateless(lambda item: [item]), after="words", parallelism=2)
    topology.bolt("second", origins(lambda item, state: [item]), after=["first", "plain"], parallelism=3)
    topology.bolt("third", origins(lambda item, state: [item]), after="second", group=lambda item: item[1])
    topology.sink("held", HeldBackSink(write), after="third", parallelism=2)
    topology.sink("at_once", IdempotentSink(write_at_once), after="third")
    return topology


def origins(logs: Logs, clock: Clock | None = None) -> dict[str, dict[tuple[int, int], int]]:
    """Return the correct state of each stateful bolt in the topology `tracing`.

    A state includes the records below the offsets in `clock`, or all records if `clock` is None.
    """
    first: Counter[tuple[int, int]] = Counter()
    second: Counter[tuple[int, int]] = Counter()
    for log in logs["words"]:
        for each in log:
            if clock is None or clock.includes(TopicPartition(each.topic, each.partition), each.offset):
                origin = each.partition, each.offset
                first[origin] += 1
                second[origin] += 1 + sum(origin) % 3
    return {"first": dict(first), "second": dict(second), "third": dict(second)}
