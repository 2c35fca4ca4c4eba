"""Measures how long the embedded broker takes to start, to stop and to create a topic.

The benchmark also measures how long 1,000 tests with the embedded broker take.

These commands are examples:
    hmb bench testing
    hmb bench testing --num-tests 100 --json

The embedded broker runs in the process of the program that uses it, usually a test suite. In the benchmark, it runs
in the process of the benchmark. A test suite starts and stops the broker once, and creates topics for each test. It
also imports the broker only once. The benchmark therefore does not measure the time of the import.

Each test that the benchmark runs creates a topic, sends ten records with a new HMB producer, and reads
these records with a new HMB consumer.

In each round, the tests run once. Each shorter step runs RUNS times, for example the start of the broker. The
table shows the median time of each step next to the step's goal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from statistics import median
from typing import TYPE_CHECKING

import click

from hmb.client import Consumer, Producer
from hmb.client.connection import Connection
from hmb.testing.embedded import Broker

from .measurement import POSITIVE, Measurement, scenario
from .report.samples import Sample
from .report.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS = 9  # how often each step runs in one round
CLIENTS = 10
RECORDS = [b"%d" % number for number in range(10)]
GOALS = {  # name of the figure: (label, goal in seconds)
    "start": ("start", 0.010),
    "stop": ("stop, idle", 0.010),
    "stop_with_clients": (f"stop, {CLIENTS} clients", 0.100),
    "reset": ("reset", 0.010),
    "kill": ("kill", 0.010),
    "topic": ("fresh topic", 0.005),
    "tests": ("1,000 tests", 20.0),
}


class GoalView:
    """Makes the table of the benchmark `testing`. Each row compares a median time (ms) with its goal."""

    def tables(self, samples: Sequence[Sample]) -> list[Table]:
        """Return one table with the measured time and the goal of each action."""
        rows = [["step", "median, ms", "goal, ms", "reached"]]
        for key, (label, goal) in GOALS.items():
            seconds = median(sample.figures[key] for sample in samples)
            rows.append([label, f"{seconds * 1000:,.1f}", f"{goal * 1000:,.0f}", "yes" if seconds <= goal else "no"])
        return [Table("The embedded broker in tests", rows)]

    def charts(self, samples: Sequence[Sample]) -> dict[str, Figure]:
        """Return no chart, because the table already compares each measured time with its goal."""
        return {}


VIEW = GoalView()


@contextmanager
def timed(seconds: list[float]) -> Iterator[None]:
    """Measure how long a `with` block takes, and append the time (seconds) to the list."""
    began = time.perf_counter()
    yield
    seconds.append(time.perf_counter() - began)


def repeated(step: Callable[[list[float]], None]) -> float:
    """Call `step` RUNS times. Return the median (s) of the durations that the calls add to a given list."""
    seconds: list[float] = []
    for _ in range(RUNS):
        step(seconds)
    return median(seconds)


def start(seconds: list[float]) -> None:
    with ExitStack() as stack, timed(seconds):
        stack.enter_context(Broker())


def stop(seconds: list[float], clients: int = 0) -> None:
    with Broker() as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        connections = [Connection(host, int(port)) for _ in range(clients)]
        for connection in connections:
            assert connection.versions  # The broker has accepted the connection and answered a request.
        with timed(seconds):
            broker.stop()
        for connection in connections:
            connection.close()


def kill(seconds: list[float]) -> None:
    with Broker() as broker, timed(seconds):
        broker.kill()


def reset(seconds: list[float]) -> None:
    with Broker() as broker:
        broker.produce("events", "a")
        with timed(seconds):
            broker.reset()


def topic_seconds() -> float:
    """Create several topics, one after another. Return the median time (seconds) of creating a topic.

    The function deletes each topic before it creates the next one, as the pytest fixture `hmb_topic` does between
    two tests. The result does not include the deletion.
    """
    with Broker() as broker:
        names = map("topic-{}".format, count())

        def create(seconds: list[float]) -> None:
            name = next(names)
            with timed(seconds):
                broker.create_topic(name)
            broker.delete_topic(name)

        return repeated(create)


def tests_seconds(number: int, step: Callable[[str], None]) -> float:
    """Run `number` tests, each with its own topic. Return the time (seconds) that 1,000 such tests would take."""
    with Broker() as broker:
        seconds: list[float] = []
        with timed(seconds):
            for test in range(number):
                if test % 100 == 0:
                    step(f"test {test}")
                _test(broker, f"test-{test}")
        return seconds[0] * 1000 / number


def _test(broker: Broker, topic: str) -> None:
    broker.create_topic(topic)
    with Producer(broker.bootstrap_servers) as producer:
        for value in RECORDS:
            producer.send(topic, value)
    with Consumer(broker.bootstrap_servers, topic, offset="earliest", until="end") as consumer:
        assert [record.value for record in consumer] == RECORDS
    broker.delete_topic(topic)


@scenario("testing", VIEW, rounds=1)
@click.option("--num-tests", type=POSITIVE, default=1000, show_default=True, help="Number of tests to run.")
def command(measurement: Measurement, num_tests: int) -> None:
    """Measure how fast the embedded broker starts, stops and creates topics, and how fast tests run.

    The table compares the times with goals.
    """
    progress = measurement.progress(measurement.round_count * (len(GOALS) + num_tests // 100))
    for number in range(measurement.round_count):
        figures = {"tests": tests_seconds(num_tests, progress.step), "topic": topic_seconds()}
        for name, step in {"start": start, "stop": stop, "reset": reset, "kill": kill}.items():
            progress.step(name)
            figures[name] = repeated(step)
        figures["stop_with_clients"] = repeated(lambda seconds: stop(seconds, CLIENTS))
        measurement.add(number, "HMB", "HMB", {"tests": num_tests}, figures)
