"""A topology that worker processes import.

Environment variables contain the name of its topic and the path of its database.
"""

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
    """Write an output into the database. An existing row with the same id is replaced."""
    with sqlite3.connect(os.environ["HAILSTORM_TEST_DB"], timeout=30) as connection:
        # The test crashes only the process, not the machine, so no sync is necessary.
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("INSERT OR REPLACE INTO output VALUES (?, ?, ?)", (str(name), *item))


def make_topology() -> Topology:
    """Return a topology that counts words.

    The counting bolt sends its counts to a second bolt, which finds the three highest counts. If `HAILSTORM_TEST_DB` is
    set, the counting bolt also sends its counts to a sink, which writes them into this database.
    """
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
