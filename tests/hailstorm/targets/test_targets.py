"""Tests of targets: each stores outputs and input offsets in one transaction, and refuses a sink with an old epoch."""

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
from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.errors import HailstormError, StaleEpochError, TopologyError
from hmb.hailstorm.runners.threads import ThreadRunner
from hmb.hailstorm.sink import Target, TransactionalSink
from hmb.hailstorm.snapshots import MemorySnapshotStore
from hmb.hailstorm.spout import Spout
from hmb.hailstorm.targets import DatabaseTarget, SqliteTarget, TopicTarget
from hmb.hailstorm.topology import Topology
from tests.hailstorm.conftest import produce
from tests.hailstorm.runners.test_threads import crashing
from tests.hailstorm.runners.thread_runs import run, settings, trending, words
from tests.hailstorm.topologies import word_pair

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
        yield lambda: TopicTarget(servers, topic, encode_pair), lambda: read_topic(servers, topic)
        with hmb.Admin(servers) as admin:  # Delete the consumer groups: the next test must find no offsets.
            admin.delete_groups([each.group_id for each in admin.list_groups()])
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
    assert first.open("topology", "out-0", C1) is None
    first.write([("sun", 1), ("fog", 2)], C1)
    first.write([], C2)
    first.close()
    second = reopen()
    assert second.open("topology", "out-0", C2) == C2
    assert second.open("topology", "out-1", C2) is None
    assert second.open("another", "out-0", C2) is None
    second.close()
    assert sorted(written()) == [("fog", 2), ("sun", 1)]


def test_a_hung_sink_writes_nothing_after_a_new_start(target: tuple[Reopen, Written]) -> None:
    reopen, written = target
    old, new = reopen(), reopen()
    old.open("topology", "out-0", C1)
    old.write([("sun", 1)], C1)
    assert new.open("topology", "out-0", C1) == C1
    with pytest.raises(StaleEpochError):
        old.write([("sun", 1), ("late", 9)], C2)
    new.write([("fog", 2)], C2)
    new.close()
    assert sorted(written()) == [("fog", 2), ("sun", 1)]


def test_a_transaction_that_fails_leaves_nothing(target: tuple[Reopen, Written]) -> None:
    reopen, written = target
    first = reopen()
    first.open("topology", "out-0", C1)
    with pytest.raises(Exception):  # noqa: B017  # each target has its own for a tuple that it cannot write
        first.write([("sun", 1), ("one value",)], C1)
    first.write([("sun", 1)], C1)
    first.close()
    assert written() == [("sun", 1)]


def crashes(runner: ThreadRunner) -> int:
    return runner.restarts.count


@pytest.mark.parametrize("has_outputs", [False, True], ids=["unused", "used"])
def test_an_empty_store_needs_a_target_without_outputs(
    servers: str, make_topic: Callable[..., str], tmp_path: Path, has_outputs: bool
) -> None:
    """With an empty snapshot store, a topology runs only if the sink's database contains no outputs.

    The sink has started four times, so the database contains a higher epoch than the empty store, which begins with
    epoch 1. A higher epoch alone is no error. If the database also contains outputs, the topology ends with an error,
    and does not restart.
    """
    topic = make_topic([[b"sun"]])
    sink = TransactionalSink(lambda: SqliteTarget(tmp_path / "out.db", INSERT, CREATE))
    for _ in range(4):  # Each start of the sink adds 1 to the epoch in its row.
        SqliteTarget(tmp_path / "out.db", INSERT, CREATE).open("trending", "sink0-0", Clock())
    if has_outputs:
        run(trending(topic, sink), servers)
    with ThreadRunner(trending(topic, sink), settings(servers), MemorySnapshotStore()) as runner:
        if has_outputs:
            with pytest.raises(HailstormError, match=r"outputs up to .*row trending/sink0-0 of the table"):
                runner.wait(60)
        else:
            runner.wait(60)
        assert crashes(runner) == 0
    assert read_rows(tmp_path / "out.db") == [("sun", 1)]


def test_two_topologies_share_a_database(servers: str, make_topic: Callable[..., str], tmp_path: Path) -> None:
    """Two topologies have sinks of the same name. Each sink finds its own offsets in the database that they share."""
    stores, topics = (MemorySnapshotStore(), MemorySnapshotStore()), (make_topic([[b"sun"]]), make_topic([[b"fog"]]))
    for _ in range(2):
        for store, topic, name in zip(stores, topics, ("first", "second"), strict=True):
            topology = Topology(name)
            topology.spout("words", Spout(topic))
            target = TransactionalSink(lambda: SqliteTarget(tmp_path / "out.db", INSERT, CREATE))
            topology.bolt("pair", Bolt.stateless(lambda word: [(word, 1)]), after="words")
            topology.sink("out", target, after="pair")
            run(topology, servers, store)
            produce(servers, topic, [[b"rain"]])
    assert sorted(read_rows(tmp_path / "out.db")) == [("fog", 1), ("rain", 1), ("rain", 1), ("sun", 1)]


def clock_rows(path: Path) -> list[tuple[str, str]]:
    with sqlite3.connect(path) as connection:
        return connection.execute("SELECT sink, clock FROM hailstorm_clock WHERE clock IS NOT NULL").fetchall()


def test_a_row_without_the_name_of_the_topology_is_adopted(tmp_path: Path) -> None:
    """A sink takes over a row of the database that an early version of Hailstorm wrote.

    The early version used the key `out-0`, and the new key is `topology/out-0`. The row contains offsets of input
    topics. The sink takes over the row only if the topology starts to read these topics at these offsets or later.
    """
    path = tmp_path / "out.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE hailstorm_clock (sink VARCHAR(200) PRIMARY KEY, epoch INTEGER, clock TEXT)")
        connection.execute("""INSERT INTO hailstorm_clock VALUES ('out-0', 7, '[["words", 0, 10]]')""")

    def opened(topology: str, start: Clock) -> Clock | None:
        target = SqliteTarget(path, INSERT, CREATE)
        clock = target.open(topology, "out-0", start)
        target.close()
        return clock

    assert opened("another", Clock({TopicPartition("lines", 0): 10})) is None
    assert opened("topology", Clock({P0: 9})) == C1, "the sink refuses to start, so the row keeps its key"
    assert clock_rows(path) == [("out-0", '[["words", 0, 10]]')]
    assert opened("topology", C1) == C1
    assert clock_rows(path) == [("topology/out-0", '[["words", 0, 10]]')]
    assert opened("topology", C1) == C1


def test_a_target_ahead_of_the_snapshots_is_refused(
    target: tuple[Reopen, Written], servers: str, make_topic: Callable[..., str]
) -> None:
    """A sink refuses to start if its target already contains outputs, but the snapshot store is empty.

    In this test, the snapshot store was lost. Without the error, the topology would write all outputs again.
    """
    reopen, _ = target
    topic = make_topic([[b"sun"]])
    run(trending(topic, TransactionalSink(reopen)), servers)
    with pytest.raises(HailstormError, match=r"sink0-0: the target has outputs up to .*The snapshot store was lost"):
        run(trending(topic, TransactionalSink(reopen)), servers)


def test_a_database_that_lost_its_outputs_is_refused(
    servers: str, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    """A sink refuses to start if its database lacks outputs that were written before the newest snapshot.

    A user can lose these outputs by deleting the database, or by restoring an old copy. No processor would send them
    again.
    """
    path, topic, store = tmp_path / "out.db", make_topic([[b"sun"]]), MemorySnapshotStore()
    topology = trending(topic, TransactionalSink(lambda: SqliteTarget(path, INSERT, CREATE)))
    run(topology, servers, store)
    early = path.read_bytes()
    # Run the topology twice. The newest snapshot then contains the output ("fog", 2), but no longer ("fog", 1).
    for _ in range(2):
        produce(servers, topic, [[b"fog"]])
        run(topology, servers, store)
    path.write_bytes(early)
    with pytest.raises(HailstormError, match=r"sink0-0: the target has outputs only up to .* empty snapshot store"):
        run(topology, servers, store)
    path.unlink()
    with pytest.raises(HailstormError, match=r"sink0-0: the target has no clock, although this sink wrote outputs"):
        run(topology, servers, store)
    run(topology, servers, MemorySnapshotStore())
    assert sorted(read_rows(path)) == [("fog", 1), ("fog", 2), ("sun", 1)]


@pytest.mark.parametrize("change", ["deleted", "created again"])
def test_a_target_topic_that_lost_its_outputs_is_refused(
    servers: str, make_topic: Callable[..., str], change: str
) -> None:
    topic, out, store = make_topic([[b"sun"]]), f"targets-{next(NUMBERS)}", MemorySnapshotStore()
    topology = Topology(out.replace("-", "_"))
    topology.spout("words", Spout(topic, word_pair))
    topology.sink("out", TransactionalSink(lambda: TopicTarget(servers, out, encode_pair)), after="words")
    run(topology, servers, store)  # The broker creates the topic when the target sends the first record.
    assert read_topic(servers, out) == [("sun", 1)]
    produce(servers, topic, [[b"fog"]])
    with hmb.Admin(servers) as admin:
        admin.delete_topics([out])
        if change == "created again":
            admin.create_topics([out])
    problem = f"out-0: the topic {out} was {change}, so the earlier outputs of the sink are lost"
    with pytest.raises(HailstormError, match=problem):
        run(topology, servers, store)


def test_a_target_topic_that_is_created_again_while_the_sink_runs_gets_no_more_outputs(servers: str) -> None:
    out = f"targets-{next(NUMBERS)}"
    with hmb.Admin(servers) as admin:
        admin.create_topics([out, NewTopic("words", 1)])
        target = TopicTarget(servers, out, encode_pair)
        target.open("again", "out-0", C1)
        target.write([("sun", 1)], C1)
        admin.delete_topics([out])
        admin.create_topics([out])
        with pytest.raises(TopologyError, match=f"out-0: the topic {out} was created again"):
            target.write([], C2)
        target.close()
    assert read_topic(servers, out) == []


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


class Outage(OSError):
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
                assert "the topology writes them at its next start" in str(error)
    assert len(read_rows(tmp_path / "out.db")) == 4000
    assert sum(result.states["count"].values()) == 4000
