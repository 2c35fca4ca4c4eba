"""Tests that a topology on Spark has the same result as in Hailstorm's own runners."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hmb
from hmb.hailstorm import (
    Bolt,
    HeldBackSink,
    IdempotentSink,
    Max,
    Sink,
    Spout,
    Sum,
    Topology,
    TopologyError,
    TupleId,
    run,
)
from hmb.hailstorm.runners.spark.query import on_spark
from tests.hailstorm.topologies import WORDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINES = [" ".join(WORDS[(n * n + k) % len(WORDS)] for k in range(n % 4)) for n in range(300)]


def produce(servers: str, topic: str, lines: list[str]) -> None:
    with hmb.Producer(servers) as producer:
        producer.send_many(topic, [line.encode() for line in lines])


def counting(topic: str, write: Any) -> Topology:
    topology = Topology("counting")
    topology.spout("lines", Spout(topic))
    topology.bolt("split", Bolt.stateless(str.split), after="lines", group=str)
    topology.bolt("count", Bolt.keyed(Sum(), key=str, value=lambda word: 1), after="split", group=str, parallelism=3)
    topology.bolt("highest", Bolt.keyed(Max(), lambda pair: pair[0], lambda pair: pair[1]), after="count")
    topology.sink("table", IdempotentSink(write), after="highest")
    return topology


def test_two_stateful_bolts_in_a_row_have_the_same_final_table(
    spark: SparkSession, servers: str, topic: str, tmp_path: Path
) -> None:
    """A topology with two stateful bolts writes the same final table on Spark as in Hailstorm's own runner.

    One Spark query reads the first part of the input and ends. A second Spark query continues from the checkpoint of
    the first query. The outputs have the same tuple ids as in Hailstorm's own runner.
    """
    by_hailstorm: dict[TupleId, Any] = {}
    by_spark: dict[TupleId, Any] = {}
    for part in (LINES[:200], LINES[200:]):
        produce(servers, topic, part)
        (query,) = on_spark(counting(topic, by_spark.__setitem__), spark, servers, str(tmp_path), until_end=True)
        assert query.awaitTermination(120)
    states = run(counting(topic, by_hailstorm.__setitem__), servers, until="end").states
    counts = dict(Counter(word for line in LINES for word in line.split()))
    assert states["highest"] == counts
    assert table(by_spark) == table(by_hailstorm) == counts
    assert by_spark.keys() == by_hailstorm.keys()


def table(written: dict[TupleId, Any]) -> dict[str, int]:
    """Return the largest count that the sink has written for each word."""
    result: dict[str, int] = {}
    for word, count in written.values():
        result[word] = max(count, result.get(word, 0))
    return result


def test_a_sink_that_holds_outputs_back_is_refused(tmp_path: Path) -> None:
    topology = Topology("held")
    topology.spout("lines", Spout("lines"))
    topology.sink("held", HeldBackSink(lambda items, clock: None), after="lines")
    topology.sink("plain", Sink(print), after="lines")
    with pytest.raises(TopologyError, match="held: Spark runs Sink and IdempotentSink only"):
        on_spark(topology, None, "localhost:1", str(tmp_path))  # type: ignore[arg-type]
