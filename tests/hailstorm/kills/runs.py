"""One run of a topology, in which processors, the negotiator or the broker are killed at random moments.

The run produces records, kills processes or threads, and compares the results with those of a batch job.
"""

from __future__ import annotations

import json
import logging
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import hmb
from hmb.client import NewTopic
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.codec import decode
from hmb.hailstorm.master import MasterState, Report
from hmb.hailstorm.negotiator import NegotiatorSettings
from hmb.hailstorm.registry import LocalRegistry, RegistryServer
from hmb.hailstorm.registry.sessions import MASTER
from hmb.hailstorm.runners import RunSettings, ThreadRunner
from hmb.hailstorm.runners.processor_thread import ProcessorThread
from hmb.hailstorm.runners.settings import saved_states
from hmb.hailstorm.runners.worker import encoded_settings
from hmb.hailstorm.snapshots import DirectorySnapshotStore
from hmb.hailstorm.topology import NEGOTIATOR, Processors
from tests.hailstorm.kills import topology as kill_topology
from tests.hailstorm.topologies import WORDS

ROOT = Path(__file__).parents[3]
TOPIC, PARTITIONS = "words", 2
RECORDS = 2_000
TIMEOUT = 300.0  # seconds; on a loaded machine, ten processes need minutes to start again
BROKER = """
import sys, time, hmb
with hmb.Broker(sys.argv[1], port=int(sys.argv[2])) as broker:
    print(broker.bootstrap_servers, flush=True)
    time.sleep(1e6)
"""


class Figures(NamedTuple):
    """The counts and times of one run."""

    kills: tuple[str, ...]  # the names of the killed processors
    epochs: int
    snapshots: int  # number of complete snapshots that the run has observed
    written_again: int  # outputs that a replay sent to the idempotent sink a second time
    seconds: float


class BrokerProcess:
    """A broker in a process of its own, which can be killed and started again on its port."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._port = directory, 0
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-c", BROKER, str(self._directory), str(self._port)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT
        )
        assert self._process.stdout is not None
        self.servers = self._process.stdout.readline().strip()
        assert self.servers, "the broker did not start"
        self._port = int(self.servers.rpartition(":")[2])

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class RandomCrash(Exception):
    """The exception that a thread raises when the test kills it."""


class KilledThread(ProcessorThread):
    """A processor that crashes at its next step if `victims` contains its name."""

    victims: ClassVar[set[str]] = set()

    def step(self) -> None:
        super().step()
        if self._processor.name in self.victims and not self.has_ended:
            self.victims.discard(self._processor.name)
            raise RandomCrash(self._processor.name)


class KillableRunner(ThreadRunner):
    processor_thread = KilledThread


class ThreadedTopology:
    """A topology whose processors are threads of the test's process.

    The method `kill` makes a processor's thread raise an exception when the thread takes its next step.
    """

    def __init__(self, servers: str, directory: Path) -> None:
        KilledThread.victims = set()
        self.store = DirectorySnapshotStore(directory / "snapshots")
        made = kill_topology.make(TOPIC, directory)
        self._runner = KillableRunner(made, settings(servers), self.store)
        self.processors = self._runner.processors

    def kill(self, victim: str) -> None:
        if victim == NEGOTIATOR:
            self._runner.negotiator.kill()
        else:
            KilledThread.victims.add(victim)

    def look(self) -> MasterState | None:
        """Restart crashed processors, and return the newest master state."""
        self._runner.supervise()
        return self._runner.master

    def describe(self) -> str:
        return f"it waits for {self._runner.waits_for()}"

    def close(self) -> None:
        self._runner.close()


class ProcessTopology:
    """A topology whose processors and negotiator are separate processes, as in the Hailstorm paper.

    The method `kill` ends a process with the signal SIGKILL.
    """

    def __init__(self, servers: str, directory: Path) -> None:
        self.store = DirectorySnapshotStore(directory / "snapshots")
        os.environ["HAILSTORM_KILLS_TOPIC"], os.environ["HAILSTORM_KILLS_DIRECTORY"] = TOPIC, str(directory)
        self.processors = Processors(kill_topology.shared(), {TOPIC: list(range(PARTITIONS))})
        self._registry = LocalRegistry()
        self._log = (directory / "log").open("wb")
        self._server = RegistryServer(self._registry, session_timeout=10.0)
        self._master: MasterState | None = None
        self._living: dict[str, Report] = {}
        self._registry.join("watcher").watch("", self._watch)
        self._request = {
            "topology": "tests.hailstorm.kills.topology:shared",
            "registry": self._server.address,
            "store": self.store.location,
            "settings": encoded_settings(settings(servers)),
            "reason": 2,  # Standard error (2) is redirected to the log, which then contains the reason for a crash.
        }
        self._running = {name: self._start(name) for name in (NEGOTIATOR, *self.processors.by_name)}

    def kill(self, victim: str) -> None:
        self._running[victim].kill()

    def look(self) -> MasterState | None:
        for name, process in self._running.items():
            if process.poll() is not None:
                assert process.stdin is not None
                process.stdin.close()
                self._running[name] = self._start(name)
        return self._master

    def describe(self) -> str:
        return f"the reports are {self._living}"

    def close(self) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()
            assert process.stdin is not None
            process.stdin.close()
        self._server.close()
        self._registry.close()
        self._log.close()

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "hmb.hailstorm.runners"],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            cwd=ROOT,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps({**self._request, "processors": [name]}).encode() + b"\n")
        process.stdin.flush()
        return process

    def _watch(self, path: str, value: bytes | None) -> None:
        if path == MASTER and value is not None:
            self._master = MasterState.from_value(decode(value))
        elif path != MASTER and value is not None:
            self._living[path] = Report.from_value(decode(value))
        elif path != MASTER:
            self._living.pop(path, None)


def settings(servers: str) -> RunSettings:
    negotiator = NegotiatorSettings(0.05, patience=20.0)
    return RunSettings(servers, negotiator=negotiator, poll_records=50, restart_pause=0.01, max_restarts=None)


@dataclass
class Watched:
    """A summary of a run, as the test has seen it: its last snapshot, and the numbers of snapshots and epochs."""

    completed: Clock | None = None
    snapshots: int = 0
    epochs: int = 0

    def note(self, master: MasterState | None) -> None:
        if master is not None:
            self.epochs = max(self.epochs, master.epoch)
            if master.completed is not None and master.completed != self.completed:
                self.completed = master.completed
                self.snapshots += 1


def run(seed: int, directory: Path, *, processes: bool, kills: int | None = None) -> Figures:
    """Run the topology once with kills, and return the figures. Raises AssertionError if a result is wrong."""
    started = time.monotonic()
    chance = random.Random(seed)
    words = [[chance.choice(WORDS) for _ in range(RECORDS)] for _ in range(PARTITIONS)]
    broker = BrokerProcess(directory / "broker")
    try:
        with hmb.Admin(broker.servers) as admin:
            admin.create_topics([NewTopic(TOPIC, PARTITIONS)])
        running = (ProcessTopology if processes else ThreadedTopology)(broker.servers, directory)
        try:
            victims = [NEGOTIATOR, "broker", *running.processors.by_name]
            plan = [chance.choice(victims) for _ in range(chance.randint(2, 5) if kills is None else kills)]
            seen = disturb(running, broker, words, plan, chance)
            check(running, directory, words)
        finally:
            running.close()
    finally:
        broker.kill()
    again = kill_topology.written_by_id(directory)["again"]
    return Figures(tuple(plan), seen.epochs, seen.snapshots, again, time.monotonic() - started)


def disturb(
    running: ThreadedTopology | ProcessTopology,
    broker: BrokerProcess,
    words: list[list[str]],
    plan: list[str],
    chance: random.Random,
) -> Watched:
    """Produce the records in several parts. Between two parts, kill a processor, the negotiator or the broker.

    At the end, wait until a snapshot contains all records.
    """
    seen = Watched()
    portions = len(plan) + 1
    for number in range(portions):
        for partition, log in enumerate(words):
            produce(broker.servers, partition, log[number * RECORDS // portions : (number + 1) * RECORDS // portions])
        if number < len(plan):
            # In 80% of the cases, wait until the topology is running. Without this wait, the kill can happen during a
            # start or a recovery.
            if chance.random() < 0.8:
                wait_for(running, lambda: is_flowing(running.look()))
            watch(running, seen, chance.uniform(0.0, 0.4))
            if plan[number] == "broker":
                broker.kill()
                watch(running, seen, 0.1)
                broker.start()
            else:
                running.kill(plan[number])
    deadline = time.monotonic() + TIMEOUT
    while sum((seen.completed or Clock()).values()) < RECORDS * PARTITIONS:
        assert time.monotonic() < deadline, f"no snapshot holds all records: {running.look()}; {running.describe()}"
        watch(running, seen, 0.02)
    return seen


def is_flowing(master: MasterState | None) -> bool:
    return master is not None and master.lets_spouts_flow


def watch(running: ThreadedTopology | ProcessTopology, seen: Watched, seconds: float) -> None:
    """Watch the topology for some time, and start crashed processors again."""
    until = time.monotonic() + seconds
    while True:
        seen.note(running.look())
        if time.monotonic() >= until:
            return
        time.sleep(0.01)


def produce(servers: str, partition: int, words: list[str]) -> None:
    with hmb.Producer(servers) as producer:
        producer.send_many(TOPIC, [word.encode() for word in words], partition=partition)


def check(running: ThreadedTopology | ProcessTopology, directory: Path, words: list[list[str]]) -> None:
    """Compare the bolts' saved states, and the outputs that both sinks wrote, with a simple count of all words."""
    counts = dict(Counter(word for log in words for word in log))
    states = saved_states(running.processors, running.store)
    assert states == {"count": counts, "highest": counts}
    # The transactional sink writes soon after the snapshot is complete.
    wait_for(running, lambda: len(kill_topology.written_once(directory)) >= RECORDS * PARTITIONS)
    once = kill_topology.written_once(directory)
    assert len(once) == RECORDS * PARTITIONS, f"{len(once)} outputs written by the transactional sink"
    assert dict(Counter(word for word, _ in once)) == counts
    assert {word: max(n for w, n in once if w == word) for word in counts} == counts
    by_id = kill_topology.written_by_id(directory)
    assert dict(Counter(by_id["words"])) == counts


def wait_for(running: ThreadedTopology | ProcessTopology, condition: Callable[[], bool]) -> None:
    """Wait until a condition holds. Until then, start crashed processors again."""
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline, f"the run does not get on: {running.look()}; {running.describe()}"
        running.look()
        time.sleep(0.01)


@contextmanager
def quiet() -> Iterator[None]:
    """Hide the warnings about crashes, which these runs cause on purpose."""
    logger = logging.getLogger("hmb")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
