"""Tests of topologies that run in worker processes.

A topology must return the same results in worker processes as in threads, even if a worker is killed or hangs.
"""

from __future__ import annotations

import importlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hmb.client import TopicPartition
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.codec import encode
from hmb.hailstorm.errors import HailstormError, TopologyError
from hmb.hailstorm.master import Report
from hmb.hailstorm.negotiator import NegotiatorSettings
from hmb.hailstorm.payload import Payloads
from hmb.hailstorm.reference import load_topology, reference_to
from hmb.hailstorm.registry import LocalRegistry
from hmb.hailstorm.runners import ProcessRunner, RunSettings
from hmb.hailstorm.runners.transport.post import BrokenChannelError, RemotePost
from hmb.hailstorm.snapshots import DirectorySnapshotStore, MemorySnapshotStore, SqliteSnapshotStore
from hmb.hailstorm.topology import Topology
from tests.hailstorm.conftest import produce
from tests.hailstorm.topologies import WORDS, top, trending
from tests.waiting import until

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.slow


def words(count: int, partitions: int, seed: int = 0) -> list[list[bytes]]:
    chance = random.Random(seed)
    return [[chance.choice(WORDS).encode() for _ in range(count)] for _ in range(partitions)]


def counted(logs: list[list[bytes]]) -> dict[str, int]:
    return dict(Counter(word.decode() for log in logs for word in log))


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Topology]:
    """Return a function that makes a topology for a topic.

    The topology is defined in the module `tests.hailstorm.runners.shared`, so that worker processes can import it.
    """

    def make(topic: str) -> Topology:
        monkeypatch.setenv("HAILSTORM_TEST_TOPIC", topic)
        monkeypatch.setenv("HAILSTORM_TEST_DB", str(tmp_path / "rows.db"))
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        with sqlite3.connect(tmp_path / "rows.db") as connection:
            connection.execute("CREATE TABLE output (id TEXT PRIMARY KEY, word TEXT, count INTEGER)")
        module = importlib.reload(importlib.import_module("tests.hailstorm.runners.shared"))
        topology: Topology = module.topology
        return topology

    return make


def settings(servers: str, **changes: Any) -> RunSettings:
    usual = {"until": "end", "negotiator": NegotiatorSettings(0.1), "max_restarts": None}
    return RunSettings(servers, **{**usual, **changes})


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_return_the_same_result_as_threads(
    servers: str, make_topic: Callable[..., str], shared: Callable[[str], Topology], tmp_path: Path, workers: int
) -> None:
    logs = words(1000, 2)
    store = SqliteSnapshotStore(tmp_path / "snapshots.db")
    with ProcessRunner(shared(make_topic(logs)), settings(servers), store, workers) as runner:
        result = runner.wait(100)
    assert result.states == {"count": counted(logs), "topn": top(3, counted(logs))}
    assert len(rows(tmp_path)) == 2000


def rows(tmp_path: Path) -> list[tuple[str, str, int]]:
    with sqlite3.connect(tmp_path / "rows.db") as connection:
        return connection.execute("SELECT * FROM output").fetchall()


def completed(runner: ProcessRunner) -> int:
    return sum(((runner.master and runner.master.completed) or Clock()).values())


def has_completed(runner: ProcessRunner, records: int) -> bool:
    runner.supervise()
    return completed(runner) == records


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hanging"])
def test_a_lost_worker_is_replaced(
    servers: str, make_topic: Callable[..., str], shared: Callable[[str], Topology], tmp_path: Path, how: signal.Signals
) -> None:
    """The negotiator replaces a worker that hangs.

    The worker's session ends, the worker does not register for the new epoch, and it is killed.
    """
    topic = make_topic([[], []])
    logs: list[list[bytes]] = [[], []]
    options = settings(servers, until=None, start_timeout=1.0 if how is signal.SIGSTOP else 10.0)
    with ProcessRunner(shared(topic), options, DirectorySnapshotStore(tmp_path / "snapshots"), 2) as runner:
        for number in range(2):
            more = words(500, 2, number)
            logs += more
            produce(servers, topic, more)
            until(partial(has_completed, runner, 1000 * (number + 1)), "a snapshot with all records")
            os.kill(runner.workers[number].process.pid, how)
            produce(servers, topic, more)
            logs += more
            until(partial(has_completed, runner, sum(map(len, logs))), "a snapshot after the recovery")
        result = runner.stop(60)
    assert result.states["count"] == counted(logs)
    assert result.epochs >= 3
    assert len(rows(tmp_path)) == sum(map(len, logs))


def test_the_spouts_soon_read_records_again_after_a_worker_is_killed(
    servers: str, make_topic: Callable[..., str], shared: Callable[[str], Topology], tmp_path: Path
) -> None:
    """On an idle machine, recovery takes less than 3 seconds. The limit of 10 seconds is for a busy machine."""
    topology, store = shared(make_topic(words(100, 2))), DirectorySnapshotStore(tmp_path / "s")
    with ProcessRunner(topology, settings(servers, until=None), store, 2) as runner:
        until(partial(has_completed, runner, 200))
        killed = time.monotonic()
        runner.workers[1].process.kill()
        until(lambda: runner.supervise() or (runner.master is not None and runner.master.epoch == 2))
        until(lambda: runner.supervise() or (runner.master is not None and runner.master.lets_spouts_flow))
        assert time.monotonic() - killed < 10
        runner.stop(60)


def test_a_worker_that_crashes_each_time_ends_the_run_with_its_reason(
    servers: str, make_topic: Callable[..., str], shared: Callable[[str], Topology], tmp_path: Path
) -> None:
    topology = shared(make_topic(words(10, 1)))
    (tmp_path / "rows.db").unlink()
    (tmp_path / "rows.db").mkdir()  # A directory has the name of the database, so the sink cannot open it.
    # The crash of one worker can make the other one end once in an epoch. After four restarts, the crash is the most
    # frequent reason.
    options = settings(servers, max_restarts=3)
    with (
        ProcessRunner(topology, options, DirectorySnapshotStore(tmp_path / "s"), 2) as runner,
        pytest.raises(HailstormError, match=r"4 restarts without progress, most often because worker \d .*Operational"),
    ):
        runner.wait(100)


def test_a_store_in_memory_cannot_be_shared(servers: str, shared: Callable[[str], Topology]) -> None:
    with pytest.raises(TopologyError, match="other processes cannot open a MemorySnapshotStore"):
        ProcessRunner(shared("any"), settings(servers), MemorySnapshotStore(), 2)


def test_workers_end_with_the_process_that_started_them(
    servers: str, make_topic: Callable[..., str], shared: Callable[[str], Topology], tmp_path: Path
) -> None:
    shared(make_topic([[b"sun"]]))
    program = (
        "import os, sys, time; from hmb.hailstorm.runners import *; from hmb.hailstorm.snapshots import *;"
        "from tests.hailstorm.runners.shared import topology;"
        f"r = ProcessRunner(topology, RunSettings({servers!r}), DirectorySnapshotStore({str(tmp_path / 's')!r}), 2);"
        "print(*(worker.process.pid for worker in r.workers), flush=True); time.sleep(100)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert parent.stdout is not None
    workers = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(workers) == 2
    parent.kill()
    parent.wait(10)
    parent.stdout.close()
    until(lambda: not any(is_running(pid) for pid in workers), "the workers have ended")


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# -- references


def test_a_topology_in_a_module_is_found_by_its_name(shared: Callable[[str], Topology]) -> None:
    topology = shared("any")
    assert reference_to(topology) == "tests.hailstorm.runners.shared:topology"
    assert load_topology("tests.hailstorm.runners.shared:topology") is topology
    assert load_topology("tests.hailstorm.topologies:trending").name == "trending"


def test_a_topology_without_a_name_cannot_be_shared() -> None:
    with pytest.raises(TopologyError, match="assign it to a name at the top of a module"):
        reference_to(trending())


def test_a_topology_in_a_file_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from hmb.hailstorm.topology import Topology\n"
        "wind = Topology('wind')\n"
        "if __name__ == '__main__': raise SystemExit('a program, not a module')\n"
    )
    assert load_topology(f"{path}:wind").name == "wind"
    with pytest.raises(TopologyError, match=r"has no topology 'wnid'; its topologies: wind"):
        load_topology(f"{path}:wnid")


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("nonsense", "does not name a topology: write module:name"),
        ("no.such.module:topology", "no.such.module cannot be imported"),
        ("/no/such/file.py:topology", "cannot be imported"),
        ("tests.hailstorm.topologies:WORDS", "has no topology 'WORDS'"),
    ],
)
def test_a_wrong_reference_is_named(reference: str, problem: str) -> None:
    with pytest.raises(TopologyError, match=problem):
        load_topology(reference)


# -- channels


def test_a_channel_keeps_the_order_and_a_broken_one_is_noticed() -> None:
    registry = LocalRegistry()
    sender, receiver = RemotePost(registry.join("sender")), RemotePost(registry.join("receiver"))
    mailbox = receiver.open_mailbox("count-0")
    session = registry.join("count-0")
    session.create("living/count-0", encode(Report(epoch=1, address=receiver.address).to_value()))
    partition = TopicPartition("words", 0)
    for number in range(50):
        mark = Clock({partition: number + 1})
        made = Payloads(1, "words-0", ("words",), partition, mark, [("sun", number)], [number])
        sender.deliver("count-0", made, lambda: False)
    arrived = [mailbox.take(10) for _ in range(50)]
    assert [each.tuples for each in arrived if isinstance(each, Payloads)] == [[("sun", n)] for n in range(50)]
    receiver.close()

    def send_until_it_breaks() -> bool:
        try:
            sender.deliver("count-0", made, lambda: False)
        except BrokenChannelError:
            return True
        return False

    until(send_until_it_breaks, "the broken channel is noticed")
    sender.close()
    registry.close()
