"""Kills processes with the signal SIGKILL while Spark jobs run, and then checks the results of the jobs.

    python -m tests.spark.kill --kills 20                  # with HMB's broker
    python -m tests.spark.kill --kills 20 --broker kafka   # with Apache Kafka 4.3.0

A producer sends the records of the module `orders` during the whole run. The driver process (module `kill_driver`) runs
six jobs: a batch aggregate, windows with a watermark, a join of two streams, an upsert with foreachBatch, an
exactly-once copy to another topic, and a lambda architecture.

The experiment kills three kinds of processes in a fixed order, again and again: a Python worker, the broker, and the
driver with its JVM. Random numbers with a fixed seed choose the moment of each kill: during a batch of one of the
queries, or after the commit of a batch. Before each kill, each job makes progress.

The last kill is always a kill of the driver. The next driver reads to the end of the topics, and writes the rows of all
jobs to a file. These rows must equal the rows that plain Python computes from the records that the producer has sent.

A query writes each order at least once to the topic `speed`, so this topic can contain several copies of an order. The
experiment counts the extra copies, but accepts them.
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
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

import hmb
from hmb.bench import peers
from hmb.client.admin import NewTopic, raised
from tests.spark.orders import (
    LATE_FROM,
    ORDERS,
    PAYMENTS,
    Order,
    Payment,
    Row,
    Sent,
    answers,
    closing,
    encoded,
    late_orders,
    shopping,
)

QUERIES = ("windows", "join", "upsert", "once", "speed")  # the streaming queries; each has a checkpoint
WITH_WATERMARK = QUERIES[:2]
VIEW = "view.json"  # the file with the newest result of the batch query
# The victims in reverse order. With three kills, a worker dies first, then the broker, and finally the driver.
VICTIMS = ("driver", "broker", "worker")
PARTITIONS = 2
ROUND = 5  # the number of purchase orders that the producer sends together
SECONDS = 600.0  # the limit of most waits; it is long because the machine can be busy
ROOT = Path(__file__).resolve().parents[2]
# Java's optimizing compiler needs more CPU time than it saves, because each driver lives for about a minute only.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

T = TypeVar("T")


class Feeding(threading.Thread):
    """A producer that sends orders and payments during the whole run, even after another process was killed."""

    def __init__(self, servers: str, seed: int) -> None:
        super().__init__(daemon=True)
        self._servers, self._chance = servers, random.Random(seed)
        self._enough = threading.Event()
        self._is_complete = False
        self._sent = Sent([], [], [], [])

    def run(self) -> None:
        stream = shopping(self._chance)
        with hmb.Producer(self._servers, delivery_timeout=SECONDS, max_block=SECONDS) as producer:
            while not self._enough.wait(0.1):
                pairs = list(islice(stream, ROUND))
                orders, payments = [order for order, _ in pairs], [paid for _, paid in pairs if paid is not None]
                self._send(producer, orders, payments)
                self._sent.orders.extend(orders)
                self._sent.payments.extend(payments)
            first = len(self._sent.orders)
            self._sent.late.extend(late_orders(self._chance, first, 30))
            self._send(producer, self._sent.late, [])
            last_order, last_payment = closing(first + len(self._sent.late))
            self._sent.closing.append(last_order)
            self._send(producer, self._sent.closing, [last_payment])
        self._is_complete = True

    def _send(self, producer: hmb.Producer, orders: list[Order], payments: list[Payment]) -> None:
        """Send records, and wait for all acknowledgements.

        The producer sends no newer records until all partitions have stored these records. The event times of all
        partitions therefore stay close together, even if the broker restarts.
        """
        sent = [producer.send(ORDERS, encoded(order), order.customer.encode()) for order in orders]
        sent += [producer.send(PAYMENTS, encoded(each), b"%d" % each.id) for each in payments]
        for each in sent:
            each.result(SECONDS)

    def end(self) -> Sent:
        """Make the producer send its last records and stop. Return the records that the producer has sent.

        The producer first sends the late orders, whose event times are in the first window. Then it sends an order and
        a payment with event times about ten days after all other records, so all earlier windows end.
        """
        self._enough.set()
        self.join(SECONDS)
        assert self._is_complete, "the producer could not send all records"
        return self._sent


class Driver:
    """The process that runs the jobs, and all child processes of this process."""

    def __init__(self, servers: str, directory: Path) -> None:
        self._arguments = [sys.executable, "-m", "tests.spark.kill_driver", servers, str(directory)]
        self.log = directory / "driver.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *further: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAVA_TOOL_OPTIONS": JAVA_OPTIONS}
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
        """Return the process ids of Spark's Python workers, without the daemon process that starts the workers."""
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
    def __init__(self, directory: Path, seed: int, broker: peers.Peer) -> None:
        self.directory, self.broker = directory, broker
        self._seed, self._chance = seed, random.Random(seed)
        self.driver = Driver(broker.bootstrap, directory)
        self.killed: Counter[str] = Counter()

    def run(self, kills: int) -> dict[str, dict[str, int]]:
        """Run the experiment with this number of kills. Start the broker before this call.

        For each job, return how many rows were expected, missing, repeated and unexpected.
        """
        with contextlib.ExitStack() as stack:
            with hmb.Admin(self.broker.bootstrap) as admin:
                topics = [NewTopic(name, PARTITIONS) for name in (ORDERS, PAYMENTS, "once", "speed")]
                for answer in admin.create_topics(topics).values():
                    raised(answer)
            feeding = Feeding(self.broker.bootstrap, self._seed)
            feeding.start()
            stack.callback(self.driver.kill)
            self.driver.start()
            for left in reversed(range(kills)):
                self._await_progress()
                if left == 0:
                    self._await_watermarks()
                self._kill(VICTIMS[left % len(VICTIMS)], is_last=left == 0)
            sent = feeding.end()
            return self._compare(sent, self._finish())

    def _await_progress(self) -> None:
        """Wait until each job has made progress after the last kill."""
        before = self._progress()
        self._await(lambda: all(now > then for now, then in zip(self._progress(), before, strict=True)))

    def _await_watermarks(self) -> None:
        """Wait until the watermarks are so high that the queries will drop the late orders."""
        self._await(lambda: all(self._watermark(name) >= LATE_FROM for name in WITH_WATERMARK))

    def _await_place(self) -> str:
        """Wait for the moment of the next kill, and return a description of this moment.

        The moment is during a batch of a random query, or shortly after the query has committed a batch. Example of a
        description: "during batch 4 of join".
        """
        name = self._chance.choice(QUERIES)
        if self._chance.random() < 0.5:
            self._await(lambda: self._newest(name, "offsets") > self._newest(name, "commits"))
            place = f"during batch {self._newest(name, 'offsets')} of {name}"
        else:
            before = self._newest(name, "commits")
            self._await(lambda: self._newest(name, "commits") > before)
            place = f"after the commit of batch {self._newest(name, 'commits')} of {name}"
        time.sleep(self._chance.uniform(0, 0.3))
        return place

    def _await(self, find: Callable[[], T]) -> T:
        """Call the function `find` until its result is true or not empty, and return this result."""
        deadline = time.monotonic() + SECONDS
        while not (found := find()):
            dead = self.driver.process is None or self.driver.process.poll() is not None
            if dead or time.monotonic() > deadline:
                raise AssertionError(f"the jobs make no progress:\n{self.driver.log.read_text()[-4000:]}")
            time.sleep(0.03)
        return found

    def _progress(self) -> list[int]:
        """Return one value for each job. The value of a job increases when the job makes progress.

        For a streaming query, the value is the number of the newest batch that the query has committed. For the
        batch query, the value is the time, in ns, at which the driver last stored the query's result.
        """
        view = self.directory / VIEW
        view_time = view.stat().st_mtime_ns if view.exists() else -1
        return [*(self._newest(name, "commits") for name in QUERIES), view_time]

    def _newest(self, query: str, log: str) -> int:
        """Return the number of the newest batch in the checkpoint of a query, or -1 if no batch exists.

        The parameter `log` is the name of a folder in the checkpoint: `offsets` or `commits`.
        """
        batches = (self.directory / "checkpoints" / query / log).glob("[0-9]*")
        return max((int(path.name) for path in batches), default=-1)

    def _watermark(self, query: str) -> float:
        """Return the watermark of a query's newest batch, in seconds since 1970."""
        newest = self.directory / "checkpoints" / query / "offsets" / str(self._newest(query, "offsets"))
        with contextlib.suppress(OSError, ValueError):  # No batch exists yet, or Spark has just deleted the file.
            _version, metadata, *_offsets = newest.read_text().splitlines()
            return json.loads(metadata)["batchWatermarkMs"] / 1000
        return 0.0

    def _kill(self, victim: str, *, is_last: bool) -> None:
        print(f"kill -9 {victim} {self._await_place()}", flush=True)
        if victim == "driver":
            self.driver.kill()
            if not is_last:
                self.driver.start()
        elif victim == "broker":
            self.broker.kill()
            time.sleep(self._chance.uniform(0, 1.0))
            self.broker.start()
        else:
            workers = self._await(self.driver.workers)
            with contextlib.suppress(ProcessLookupError):  # The process has just ended.
                os.kill(self._chance.choice(workers), signal.SIGKILL)
        self.killed[victim] += 1

    def _finish(self) -> dict[str, list[Row]]:
        process = self.driver.start("--finish")
        if process.wait(2 * SECONDS):
            raise AssertionError(f"the jobs do not come to their end:\n{self.driver.log.read_text()[-4000:]}")
        results = json.loads((self.directory / "results.json").read_text())
        return {name: [tuple(row) for row in rows] for name, rows in results.items()}

    def _compare(self, sent: Sent, results: dict[str, list[Row]]) -> dict[str, dict[str, int]]:
        expected = answers(sent)
        results["once"] = self._committed("once", len(sent.all_orders))
        found = {name: differences(rows, results[name]) for name, rows in expected.items()}
        found["orders"] = differences(expected["once"], self._values(ORDERS))
        found["speed"] = differences(expected["once"], self._values("speed"))
        return found

    def _committed(self, topic: str, count: int) -> list[Row]:
        """Wait up to a minute for `count` committed records, and return the values of all committed records.

        Kafka's broker answers EndTxn before it writes the commit markers of the transaction. Until the broker has
        written these markers, a consumer cannot read the records of the transaction.
        """
        deadline = time.monotonic() + 60
        while len(found := self._values(topic)) < count and time.monotonic() < deadline:
            time.sleep(0.2)
        return found

    def _values(self, topic: str) -> list[Row]:
        """Return the values of all committed records of a topic, as rows with one column."""
        settings = {"until": "end", "isolation_level": "read_committed"}
        with hmb.Consumer(self.broker.bootstrap, topic, **settings) as consumer:
            return [((record.value or b"").decode(),) for record in consumer]


def differences(expected: list[Row], found: list[Row]) -> dict[str, int]:
    """Return the numbers of expected, missing, repeated and unexpected rows."""
    wanted, there = Counter(expected), Counter(found)
    surplus = there - wanted
    return {
        "expected": len(expected),
        "missing": (wanted - there).total(),
        "repeated": sum(count for row, count in surplus.items() if row in wanted),
        "unexpected": sum(count for row, count in surplus.items() if row not in wanted),
    }


def check(found: dict[str, dict[str, int]]) -> None:
    for name, counts in found.items():
        assert counts["expected"] > 0, f"{name} has no rows"
        assert counts["missing"] == 0, f"{name} lacks {counts['missing']} rows"
        assert counts["unexpected"] == 0, f"{name} has {counts['unexpected']} wrong rows"
        assert name == "speed" or counts["repeated"] == 0, f"{name} has {counts['repeated']} rows twice"


def broker_of(kind: str, directory: Path) -> peers.Peer:
    """Return HMB's broker or the broker of Apache Kafka 4.3.0. The caller starts the broker."""
    if kind == "hmb":
        return peers.Hmb(directory)
    # Kafka's restart takes longer with the usual 50 partitions of each internal topic.
    return peers.Kafka43(
        directory, config={"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "3"}
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="kill -9 Spark's driver, its workers and their broker.")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--broker", choices=["hmb", "kafka"], default="hmb")
    chosen = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hmb-kill-") as name:
        directory = Path(name)
        with broker_of(chosen.broker, directory / "broker") as broker:
            experiment = Experiment(directory, chosen.seed, broker)
            found = experiment.run(chosen.kills)
    kills = ", ".join(f"{victim} {count}" for victim, count in experiment.killed.items())
    print(f"{broker.name}: {kills}, {time.monotonic() - begun:.0f} s")
    for name, counts in found.items():
        print(f"{name:<8}" + "  ".join(f"{what} {count:,}" for what, count in counts.items()))
    check(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
