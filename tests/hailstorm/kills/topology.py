"""The topology of the test runs in which processes or threads are killed.

A worker process makes the topology with the function `shared`. This function reads the name of the topic and the
directory of the databases from environment variables.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

from hmb.hailstorm import Bolt, IdempotentSink, Max, Spout, SqliteTarget, Sum, Topology, TransactionalSink
from hmb.hailstorm.payload import TupleId
from tests.hailstorm.topologies import word_pair

CREATE = """
CREATE TABLE IF NOT EXISTS once (word TEXT, count INTEGER);
CREATE TABLE IF NOT EXISTS by_id (id TEXT PRIMARY KEY, word TEXT, count INTEGER, writes INTEGER);
"""
INSERT = "INSERT INTO once VALUES (?, ?)"
UPSERT = """
INSERT INTO by_id VALUES (?, ?, ?, 1)
ON CONFLICT (id) DO UPDATE SET count = excluded.count, writes = writes + 1
"""


class Rows:
    """The database table `by_id`. Each row has the identity of an output, and counts how often the row was written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def write(self, name: TupleId, item: tuple[str, int]) -> None:
        if self._connection is None:
            self._connection = sqlite3.connect(self._path, timeout=30, isolation_level=None, check_same_thread=False)
            self._connection.executescript("PRAGMA synchronous=OFF;" + CREATE)
        self._connection.execute(UPSERT, (str(name), *item))


def make(topic: str, directory: Path) -> Topology:
    """Return a topology with two bolts. `count` counts words, and `highest` keeps the highest count of each word.

    The topology also has two sinks, which write the outputs of `count`. The bolt `highest` has a combiner.
    """
    rows = Rows(directory / "by_id.db")
    topology = Topology("kills")
    topology.spout("words", Spout(topic, word_pair))
    count = Bolt.keyed(Sum(), key=lambda pair: pair[0], value=lambda pair: pair[1])
    topology.bolt("count", count, after="words", parallelism=2)
    highest = Bolt.keyed(Max(), lambda pair: pair[0], lambda pair: pair[1], lambda word, state: [], combine=True)
    topology.bolt("highest", highest, after="count", parallelism=2)
    topology.sink("by_id", IdempotentSink(rows.write), after="count")
    topology.sink("once", TransactionalSink(lambda: SqliteTarget(directory / "once.db", INSERT, CREATE)), after="count")
    return topology


def shared() -> Topology:
    """Return the topology for the topic and the directory that two environment variables contain."""
    return make(os.environ["HAILSTORM_KILLS_TOPIC"], Path(os.environ["HAILSTORM_KILLS_DIRECTORY"]))


def written_once(directory: Path) -> list[tuple[str, int]]:
    with sqlite3.connect(directory / "once.db") as connection:
        return connection.execute("SELECT word, count FROM once").fetchall()


def written_by_id(directory: Path) -> dict[str, Any]:
    """Return the words in the table `by_id`, and how many writes repeated an earlier write of the same row."""
    with sqlite3.connect(directory / "by_id.db") as connection:
        rows = connection.execute("SELECT id, word, writes FROM by_id").fetchall()
    return {"words": [word for _, word, _ in rows], "again": sum(writes - 1 for _, _, writes in rows)}
