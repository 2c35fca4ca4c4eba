"""Tests of topologies in threads with a real broker: results and recoveries."""

from __future__ import annotations

import random
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import hmb
from hmb.client import TopicPartition
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.errors import HailstormError
from hmb.hailstorm.runners import ThreadRunner
from hmb.hailstorm.runners.processor_thread import ProcessorThread
from hmb.hailstorm.sink import HeldBackSink, IdempotentSink, Sink
from hmb.hailstorm.snapshots import DirectorySnapshotStore, MemorySnapshotStore, SnapshotStore, SqliteSnapshotStore
from hmb.hailstorm.spout import Spout
from hmb.hailstorm.topology import Topology
from tests.hailstorm.conftest import produce
from tests.hailstorm.runners.thread_runs import MakeTopic, completed_sum, counted, run, settings, trending, words
from tests.hailstorm.topologies import count_bolt, top, word_pair
from tests.waiting import until


def test_a_bounded_topic_is_counted(servers: str, make_topic: MakeTopic) -> None:
    logs = words(3000, 3)
    seen: list[Any] = []
    result = run(trending(make_topic(logs), Sink(seen.append)), servers)
    assert result.states == {"count": counted(logs), "topn": top(3, counted(logs))}
    assert len(seen) == 9000
    assert result.completed is not None and sum(result.completed.values()) == 9000
    assert result.epochs == 1 and result.snapshots >= 1


def test_an_empty_topic_and_an_idle_partition_do_not_stall(
    servers: str, make_topic: MakeTopic, caplog: pytest.LogCaptureFixture
) -> None:
    assert run(trending(empty := make_topic([[], [], []])), servers).states["count"] == {}
    assert [it.message for it in caplog.records if "no records" in it.message] == [
        f"the topic {empty} has no records, so its spout has nothing to read"
    ]
    caplog.clear()
    assert run(trending(make_topic([[b"sun"], [], []])), servers).states["count"] == {"sun": 1}
    assert not caplog.records


@pytest.mark.parametrize("kind", ["directory", "sqlite"])
def test_a_second_run_goes_on_where_the_first_ended(
    servers: str, make_topic: MakeTopic, tmp_path: Path, kind: str
) -> None:
    def store() -> SnapshotStore:
        return DirectorySnapshotStore(tmp_path) if kind == "directory" else SqliteSnapshotStore(tmp_path / "db")

    logs, more = words(500, 2), words(300, 2, seed=1)
    topic = make_topic(logs)
    assert run(trending(topic), servers, store()).states["count"] == counted(logs)
    produce(servers, topic, more)
    seen: list[Any] = []
    result = run(trending(topic, Sink(seen.append)), servers, store())
    assert result.states["count"] == counted([*logs, *more])
    assert len(seen) == 600, "only the new records are read"
    assert result.epochs == 2


def test_an_unbounded_topology_is_stopped_with_a_last_snapshot(servers: str, make_topic: MakeTopic) -> None:
    logs = words(400, 2)
    topic = make_topic(logs)
    written: list[Any] = []
    with ThreadRunner(
        trending(topic, HeldBackSink(lambda items, clock: written.extend(items))),
        settings(servers, end=False, grace=None),
        MemorySnapshotStore(),
    ) as runner:
        until(lambda: spouts_position(runner) == 800, "all records are read")
        assert written == []
        result = runner.stop(30)
    assert result.states["count"] == counted(logs)
    assert result.snapshots == 1
    assert len(written) == 800, "the last snapshot releases what the sink held back"


def spouts_position(runner: ThreadRunner) -> int:
    return sum(report.figures.get("position", 0) for report in runner.living.values())


def test_snapshots_are_taken_while_data_flows(servers: str, make_topic: MakeTopic) -> None:
    topic = make_topic([[], []])
    with ThreadRunner(trending(topic), settings(servers, end=False, grace=0.02), MemorySnapshotStore()) as runner:
        for sent in range(100, 600, 100):
            produce(servers, topic, words(50, 2, seed=sent))
            until(partial(has_completed, runner, sent), "a snapshot with all records")
        assert runner.negotiator.snapshots >= 5
        runner.stop(30)


def has_completed(runner: ThreadRunner, records: int) -> bool:
    """Restart crashed processors. Return whether a complete snapshot contains all records."""
    runner.supervise()
    return completed_sum(runner) == records


def test_offsets_without_records_do_not_stall_a_snapshot(servers: str, make_topic: MakeTopic) -> None:
    """Transaction markers and aborted records have offsets but no tuples.

    A snapshot that covers such offsets must still complete.
    """
    topic = make_topic([[]])
    with hmb.Producer(servers, transactional_id=topic) as producer:
        producer.init_transactions()
        for number in range(6):
            producer.begin_transaction()
            producer.send(topic, b"sun" if number % 2 else b"fog", partition=0)
            if number % 2:
                producer.commit_transaction()
            else:
                producer.flush()
                producer.abort_transaction()
    result = run(trending(topic), servers)
    assert result.states["count"] == {"sun": 3}
    assert result.completed == Clock({TopicPartition(topic, 0): 12})


def test_aborted_records_are_read_only_if_the_user_wants_them(servers: str, make_topic: MakeTopic) -> None:
    topic = make_topic([[]])
    with hmb.Producer(servers, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"fog", partition=0)
        producer.flush()
        producer.abort_transaction()
    topology = trending(topic)
    dirty = Topology("dirty")
    dirty.spout("words", Spout(topic, word_pair, isolation_level="read_uncommitted"))
    dirty.bolt("count", count_bolt(), after="words")
    assert run(topology, servers).states["count"] == {}
    assert run(dirty, servers).states["count"] == {"fog": 1}


# -- crashes: an exception at a random step


class RandomCrash(Exception):
    """An exception that a test raises in a processor."""


def crashing(rate: float, seed: int) -> type[ThreadRunner]:
    """Return a runner whose processors crash at random steps. `rate` is the probability of a crash at each step."""
    chance = random.Random(seed)
    lock = threading.Lock()

    class CrashingThread(ProcessorThread):
        def step(self) -> None:
            with lock:
                crashes = chance.random() < rate
            super().step()
            if crashes and not self.has_ended:
                raise RandomCrash(self.name)

    class CrashingRunner(ThreadRunner):
        processor_thread = CrashingThread

    return CrashingRunner


@pytest.mark.parametrize("seed", range(3))
def test_random_crashes_change_no_result(servers: str, make_topic: MakeTopic, seed: int) -> None:
    logs = words(4000, 2, seed)
    by_id: dict[Any, Any] = {}
    written: list[Any] = []
    topology = trending(
        make_topic(logs),
        IdempotentSink(by_id.__setitem__),
        HeldBackSink(lambda items, clock: written.append((clock, items))),
    )
    options = settings(servers, grace=0.01, poll_records=50, restart_pause=0.005)
    with crashing(0.002, seed)(topology, options, MemorySnapshotStore()) as runner:
        result = runner.wait(100)
    assert result.states == {"count": counted(logs), "topn": top(3, counted(logs))}
    assert len(by_id) == 8000
    # After a crash, the sink can repeat a call of `write` with the same clock. The dict keeps one call for each clock.
    once = {str(clock): items for clock, items in written}
    assert sum(map(len, once.values())) == 8000


def test_a_killed_negotiator_is_replaced(servers: str, make_topic: MakeTopic) -> None:
    topic = make_topic([[], []])
    logs: list[list[bytes]] = [[], []]
    with ThreadRunner(trending(topic), settings(servers, end=False, grace=0.02), MemorySnapshotStore()) as runner:
        for number in range(3):
            more = words(200, 2, seed=number)
            produce(servers, topic, more)
            logs += more
            runner.negotiator.kill()
            until(lambda: not runner.negotiator.is_alive())
            runner.supervise()
            until(partial(has_completed, runner, 400 * (number + 1)), "a snapshot")
        result = runner.stop(30)
    assert result.states["count"] == counted(logs)
    assert result.epochs == 4


def test_a_crash_at_every_turn_ends_the_run_with_the_reason(servers: str, make_topic: MakeTopic) -> None:
    topology = trending(make_topic(words(10, 1)))
    runner = crashing(1.0, 1)(topology, settings(servers, max_restarts=2), MemorySnapshotStore())
    problem = r"\d restarts without progress, most often because .* RandomCrash"
    with runner, pytest.raises(HailstormError, match=problem):
        runner.wait(60)
