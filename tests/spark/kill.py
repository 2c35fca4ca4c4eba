"""Kills processes during streaming queries with SIGKILL, and compares the outputs with those of a batch query.

    python -m tests.spark.kill --kills 20

A producer sends numbered records during the whole run. Three queries (module `kill_driver`) read them: one writes
Parquet files, one writes a topic at least once, and one writes a topic exactly once.

The test kills the driver with its JVM, a Python worker and the broker alternately. It restarts each of them, and the
queries continue from their checkpoints. After the last kill the queries read to the end of the topic. The outputs must
then contain:

    the topic   every acknowledged record, once
    parquet     each row of the batch query's result, once
    copy        each row of that result; rows that were written again are counted
    once        each row of the batch query's result, once
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import hmb
from hmb.bench import peers
from hmb.client.admin import NewTopic, raised

TOPIC = "numbers"
QUERIES = ("parquet", "copy", "once")
VICTIMS = ("driver", "worker", "broker")
PARTITIONS = 2
SECONDS = 600.0  # the longest time that a query may need to make progress on a busy machine
ROOT = Path(__file__).resolve().parents[2]


class Feeding(threading.Thread):
    """A producer that sends records during the whole run. It continues whichever process is killed."""

    def __init__(self, servers: str) -> None:
        super().__init__(daemon=True)
        self._servers = servers
        self._enough = threading.Event()
        self._sent: list[Future[object]] = []
        self.acknowledged = 0

    def run(self) -> None:
        with hmb.Producer(self._servers, delivery_timeout=SECONDS, max_block=SECONDS) as producer:
            while not self._enough.wait(0.1):
                for _ in range(20):
                    number = b"%d" % len(self._sent)
                    self._sent.append(producer.send(TOPIC, number, number))  # type: ignore[arg-type]
        self.acknowledged = sum(1 for each in self._sent if each.exception() is None)

    def end(self) -> int:
        """Stop the producer, and return the number of acknowledged records."""
        self._enough.set()
        self.join(SECONDS)
        assert not self.is_alive(), "the producer does not come to its end"
        assert self.acknowledged == len(self._sent), f"only {self.acknowledged} of {len(self._sent)} were acknowledged"
        return self.acknowledged


class Driver:
    """The process that runs the three queries, and all child processes of this process."""

    def __init__(self, servers: str, directory: Path) -> None:
        self._arguments = [sys.executable, "-m", "tests.spark.kill_driver", servers, str(directory)]
        self.log = directory / "driver.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *further: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self._arguments, *further], cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        return self.process

    def kill(self) -> None:
        """Kill the driver and its JVM. The Python workers end when their connection to the JVM closes."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):  # The process has ended already.
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def workers(self) -> list[int]:
        """Return the Python workers of the JVM. The result does not contain the daemon that forks them."""
        if self.process is None:
            return []
        return [pid for pid in descendants(self.process.pid) if is_worker(pid)]


def descendants(pid: int) -> Iterator[int]:
    """Yield the ids of all processes below `pid`, from /proc (Linux)."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    wanted = {pid}
    while True:
        more = {child for child, parent in parents.items() if parent in wanted} - wanted
        if not more:
            return
        wanted |= more
        yield from more


def is_worker(pid: int) -> bool:
    """Return whether a process is one of Spark's Python workers.

    `pyspark.daemon` forks the workers, so a worker has the same command line as the daemon. The daemon is a child of
    Java, and a worker is not.
    """
    with contextlib.suppress(OSError):
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        return command_of(pid) == command_of(int(status["PPid"])) and "pyspark" in command_of(pid)
    return False


def command_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()


class Experiment:
    def __init__(self, directory: Path, chance: random.Random) -> None:
        self.directory, self._chance = directory, chance
        self.broker = peers.Hmb(directory / "broker")
        self.driver = Driver(self.broker.bootstrap, directory)
        self.killed: Counter[str] = Counter()

    def run(self, kills: int) -> dict[str, dict[str, int]]:
        """Run the experiment.

        Return the result of each output (`kill_driver.Job.outcome`) and the number of records sent.
        """
        with self.broker, contextlib.ExitStack() as stack:
            with hmb.Admin(self.broker.bootstrap) as admin:
                created = admin.create_topics([NewTopic(name, PARTITIONS) for name in (TOPIC, *QUERIES[1:])])
                for answer in created.values():
                    raised(answer)
            feeding = Feeding(self.broker.bootstrap)
            feeding.start()
            stack.callback(self.driver.kill)
            self.driver.start()
            for number in range(kills):
                self._await_progress()
                self._kill(VICTIMS[number % len(VICTIMS)])
            self._await_progress()
            self.driver.kill()
            sent = feeding.end()
            return {"topic": self._topic(sent), **self._finish()}

    def _await_progress(self) -> None:
        """Wait until each query has committed a batch after the last kill. Then wait for a short random time."""
        before = self._batches()
        deadline = time.monotonic() + SECONDS
        while any(now <= then for now, then in zip(self._batches(), before, strict=True)):
            self._check_alive(deadline)
            time.sleep(0.05)
        time.sleep(self._chance.uniform(0, 1.0))

    def _batches(self) -> list[int]:
        """Return, for each query, the number of the last batch in its checkpoint."""
        checkpoints = self.directory / "checkpoints"
        return [
            max((int(path.name) for path in (checkpoints / name / "commits").glob("[0-9]*")), default=-1)
            for name in QUERIES
        ]

    def _check_alive(self, deadline: float) -> None:
        dead = self.driver.process is None or self.driver.process.poll() is not None
        if dead or time.monotonic() > deadline:
            raise AssertionError(f"the queries do not get on:\n{self.driver.log.read_text()[-4000:]}")

    def _kill(self, victim: str) -> None:
        print(f"kill -9 {victim} at batches {self._batches()}", flush=True)
        if victim == "driver":
            self.driver.kill()
            self.driver.start()
        elif victim == "broker":
            self.broker.kill()
            time.sleep(self._chance.uniform(0, 1.0))
            self.broker.start()
        else:
            deadline = time.monotonic() + SECONDS
            while not (workers := self.driver.workers()):
                self._check_alive(deadline)
            with contextlib.suppress(ProcessLookupError):  # The process has just ended.
                os.kill(self._chance.choice(workers), signal.SIGKILL)
        self.killed[victim] += 1

    def _topic(self, sent: int) -> dict[str, int]:
        with hmb.Consumer(self.broker.bootstrap, TOPIC, until="end") as consumer:
            there = [int(record.value or b"") for record in consumer]
        return {
            "expected": sent,
            "rows": len(there),
            "missing": sent - len(set(there)),
            "duplicates": len(there) - len(set(there)),
            "foreign": 0,
        }

    def _finish(self) -> dict[str, dict[str, int]]:
        process = self.driver.start("--finish")
        if process.wait(2 * SECONDS):
            raise AssertionError(f"the queries do not come to their end:\n{self.driver.log.read_text()[-4000:]}")
        found: dict[str, dict[str, int]] = json.loads((self.directory / "outcome.json").read_text())
        return found


def check(found: dict[str, dict[str, int]]) -> None:
    for name, counts in found.items():
        assert counts["missing"] == 0, f"{name} lacks {counts['missing']} rows"
        assert counts["foreign"] == 0, f"{name} has {counts['foreign']} rows that nobody sent"
        assert name == "copy" or counts["duplicates"] == 0, f"{name} has {counts['duplicates']} rows twice"


def main() -> int:
    parser = argparse.ArgumentParser(description="kill -9 streaming queries, their workers and their broker.")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hmb-kill-") as directory:
        experiment = Experiment(Path(directory), random.Random(chosen.seed))
        found = experiment.run(chosen.kills)
    print(", ".join(f"{victim} {count}" for victim, count in experiment.killed.items()))
    for name, counts in found.items():
        print(f"{name:<8}" + "  ".join(f"{what} {count:,}" for what, count in counts.items()))
    check(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
