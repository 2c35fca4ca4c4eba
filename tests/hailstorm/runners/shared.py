"""Topologies that worker processes import. Environment variables name their input and their output."""

from __future__ import annotations

import os
import sqlite3
from typing import Any

from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.monoids import TopN
from hmb.hailstorm.payload import TupleId
from hmb.hailstorm.sink import IdempotentSink, Sink
from hmb.hailstorm.spout import Spout
from hmb.hailstorm.topology import Topology
from tests.hailstorm.topologies import count_bolt, word_pair


def write_row(name: TupleId, item: Any) -> None:
    """Insert an output under its identity, or replace it."""
    with sqlite3.connect(os.environ["HAILSTORM_TEST_DB"], timeout=30) as connection:
        # The test crashes only the process, not the machine, so no sync is necessary.
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("INSERT OR REPLACE INTO output VALUES (?, ?, ?)", (str(name), *item))


def make_topology() -> Topology:
    """Return a topology that counts words. A top-n bolt and a sink with rows in a database follow the counting bolt."""
    topology = Topology("shared")
    topology.spout("words", Spout(os.environ["HAILSTORM_TEST_TOPIC"], word_pair))
    topology.bolt("count", count_bolt(), after="words", parallelism=2)
    local_top = Bolt.over(TopN(3), transform=lambda pair, state: [("top", tuple(sorted(state.items())))])
    topology.bolt("topn", local_top, after="count")
    topology.sink("out", Sink(lambda item: None), after="topn")
    if "HAILSTORM_TEST_DB" in os.environ:
        topology.sink("rows", IdempotentSink(write_row), after="count")
    return topology


topology = make_topology() if "HAILSTORM_TEST_TOPIC" in os.environ else None
