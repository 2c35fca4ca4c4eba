"""Tests of targets: a target writes outputs and clock in one transaction, and refuses older epochs."""

from __future__ import annotations

import itertools
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hmb
from hmb.client import NewTopic, TopicPartition
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.errors import HailstormError, StaleEpochError
from hmb.hailstorm.runners.threads import ThreadRunner
from hmb.hailstorm.sink import Target, TransactionalSink
from hmb.hailstorm.snapshots import MemorySnapshotStore
from hmb.hailstorm.targets import DatabaseTarget, SqliteTarget, TopicTarget
from tests.hailstorm.runners.test_threads import crashing, run, settings, trending, words

P0 = TopicPartition("words", 0)
C1, C2 = Clock({P0: 10}), Clock({P0: 20})
NUMBERS = itertools.count()
Reopen = Callable[[], Target]
Written = Callable[[], list[tuple[str, int]]]

CREATE = "CREATE TABLE IF NOT EXISTS counts (word TEXT, count INTEGER)"
INSERT = "INSERT INTO counts VALUES (?, ?)"


@pytest.fixture(params=["sqlite", "database", "topic"])
def target(request: pytest.FixtureRequest, tmp_path: Path, servers: str) -> Iterator[tuple[Reopen, Written]]:
    """Yield two functions.

    The first makes the target, as a sink does at its start. The second returns the content of the target.
    """
    path = tmp_path / "out.db"
    if request.param == "topic":
        topic = f"targets-{next(NUMBERS)}"
        with hmb.Admin(servers) as admin:
            # A broker stores committed offsets only for an existing topic.
            admin.create_topics([NewTopic(topic, 2), NewTopic("words", 1)])
        yield lambda: TopicTarget(servers, topic, topic, encode_pair), lambda: read_topic(servers, topic)
        return
    if request.param == "sqlite":
        yield lambda: SqliteTarget(path, INSERT, CREATE), lambda: read_rows(path)
        return

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path)
        connection.execute(CREATE)
        return connection

    def insert(cursor: Any, rows: Any) -> None:
        cursor.executemany(INSERT, rows)

    yield lambda: DatabaseTarget(connect, insert), lambda: read_rows(path)


def encode_pair(pair: tuple[str, int]) -> tuple[bytes, bytes]:
    return pair[0].encode(), str(pair[1]).encode()


def read_topic(servers: str, topic: str) -> list[tuple[str, int]]:
    records = hmb.Consumer(servers, topic, until="end", isolation_level="read_committed")
    return [(record.key.decode(), int(record.value)) for record in records]


def read_rows(path: Path) -> list[tuple[str, int]]:
    with sqlite3.connect(path) as connection:
        return connection.execute("SELECT * FROM counts").fetchall()


def test_outputs_and_clock_are_found_by_the_next_start(target: tuple[Reopen, Written]) -> None:
    reopen, written = target
    first = reopen()
    assert first.open("out-0", 1) is None
    first.write([("sun", 1), ("fog", 2)], C1)
    first.write([], C2)
    first.close()
    second = reopen()
    assert second.open("out-0", 2) == C2
    assert second.open("out-1", 2) is None if isinstance(second, DatabaseTarget) else True
    second.close()
    assert sorted(written()) == [("fog", 2), ("sun", 1)]


def test_a_hung_sink_writes_nothing_after_a_new_start(target: tuple[Reopen, Written]) -> None:
    reopen, written = target
    old, new = reopen(), reopen()
    old.open("out-0", 1)
    old.write([("sun", 1)], C1)
    assert new.open("out-0", 2) == C1
    with pytest.raises(StaleEpochError):
        old.write([("sun", 1), ("late", 9)], C2)
    new.write([("fog", 2)], C2)
    new.close()
    assert sorted(written()) == [("fog", 2), ("sun", 1)]


def test_a_transaction_that_fails_leaves_nothing(target: tuple[Reopen, Written]) -> None:
    reopen, written = target
    first = reopen()
    first.open("out-0", 1)
    with pytest.raises(Exception):  # noqa: B017  # each target has its own for a tuple that it cannot write
        first.write([("sun", 1), ("one value",)], C1)
    first.write([("sun", 1)], C1)
    first.close()
    assert written() == [("sun", 1)]


def test_an_older_epoch_cannot_open_a_database_again(tmp_path: Path) -> None:
    new, old = (SqliteTarget(tmp_path / "out.db", INSERT, CREATE) for _ in range(2))
    new.open("out-0", 2)
    with pytest.raises(StaleEpochError, match="epoch 1 is refused: epoch 2 has begun"):
        old.open("out-0", 1)
    new.write([("sun", 1)], C1)


def test_a_target_ahead_of_the_snapshots_is_refused(
    target: tuple[Reopen, Written], servers: str, make_topic: Callable[..., str]
) -> None:
    """A topology has lost its snapshot store, so it computes all outputs again.

    The target already contains them, and must refuse them.
    """
    reopen, _ = target
    topic = make_topic([[b"sun"]])
    run(trending(topic, TransactionalSink(reopen)), servers)
    with pytest.raises(HailstormError, match=r"sink0-0: the target has outputs up to .*the snapshot store was lost"):
        run(trending(topic, TransactionalSink(reopen)), servers)


@pytest.mark.parametrize("seed", range(2))
def test_crashes_at_random_turns_write_each_output_once(
    target: tuple[Reopen, Written], servers: str, make_topic: Callable[..., str], seed: int
) -> None:
    reopen, written = target
    logs = words(2000, 2, seed)
    topology = trending(make_topic(logs), TransactionalSink(reopen))
    options = settings(servers, grace=0.02, poll_records=50, restart_pause=0.005)
    with crashing(0.002, seed)(topology, options, MemorySnapshotStore()) as runner:
        result = runner.wait(110)
    rows = written()
    assert len(rows) == 4000
    last = dict(Counter({word: max(count for w, count in rows if w == word) for word, _ in rows}))
    assert last == result.states["count"]


class Outage(Exception):
    """Raised by a target that is not available."""


def test_a_target_that_fails_now_and_then_gets_each_output_once(
    servers: str, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    chance = random.Random(5)

    class Unreliable(SqliteTarget):
        def write(self, tuples: Any, clock: Clock) -> None:
            before, after = chance.random() < 0.2, chance.random() < 0.2
            if before:
                raise Outage
            super().write(tuples, clock)
            if after:  # The target has committed, but the sink gets an error.
                raise Outage

    topic, store = make_topic(words(2000, 2)), MemorySnapshotStore()
    sink = TransactionalSink(lambda: Unreliable(tmp_path / "out.db", INSERT, CREATE))
    options = settings(servers, grace=0.02, poll_records=50, restart_pause=0.005)
    while True:
        with ThreadRunner(trending(topic, sink), options, store) as runner:
            try:
                result = runner.wait(110)
                break
            except HailstormError as error:
                assert "crashed after the last snapshot" in str(error)  # The next start writes the last outputs.
    assert len(read_rows(tmp_path / "out.db")) == 4000
    assert sum(result.states["count"].values()) == 4000
