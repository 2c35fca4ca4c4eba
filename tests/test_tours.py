"""Tests of the tours in the docstring of `hmb`. A tour lists the functions that handle one kind of request.

For each tour, a test sends real requests to a broker, and records which functions of HMB are called (tracing.py). These
functions must include all functions of the tour, in the order of the tour.
"""

from __future__ import annotations

import ast
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hmb
from tests.tracing import ROOT, Call, first_missing, recorded_calls
from tests.waiting import until

TOUR = re.compile(r"^The (?P<name>\S+) tour consists of (?P<hops>(?:.+\n)+)", re.MULTILINE)
FILE = re.compile(r"`([\w/]+\.py)`")
METHOD = re.compile(r"`(_?[A-Z]\w*\.\w+)`")
HOP = re.compile(r"^\d+\. +`(?P<file>[\w/]+\.py)` +`(?P<function>[\w.]+)`", re.MULTILINE)


def tours() -> dict[str, list[Call]]:
    """Return the steps of each tour, by the tour's name."""
    found = TOUR.finditer(hmb.__doc__ or "")
    return {tour["name"]: [Call(*hop) for hop in HOP.findall(tour["hops"])] for tour in found}


def produce() -> None:
    """Append enough batches to one partition, so that its offset index gets an entry."""
    with hmb.Broker() as broker, hmb.Producer(broker.bootstrap_servers, acks="all") as producer:
        for _ in range(3):
            producer.send("t", bytes(5000), key=b"key").result()


def fetch() -> None:
    """Read one record."""
    with hmb.Broker() as broker:
        with hmb.Producer(broker.bootstrap_servers) as producer:
            producer.send("t", b"value").result()
        with hmb.Consumer(broker.bootstrap_servers, "t", until="end") as consumer:
            assert [record.value for record in consumer] == [b"value"]


def join_group() -> None:
    """Let two consumers join a group. The group waits for more members before it assigns partitions."""
    with hmb.Broker(config={"group.initial.rebalance.delay.ms": "300"}) as broker:
        with hmb.Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([hmb.NewTopic("t", 2)])
        join_with_two_members(broker.bootstrap_servers, "t")


def join_with_two_members(servers: str, topic: str) -> None:
    """Let two consumers join one group, and poll until each of them owns a partition of a topic with two partitions.

    Each consumer polls in a thread of its own, because the join request of one consumer waits for the other consumer.
    """
    is_done = threading.Event()

    def poll(consumer: hmb.Consumer) -> None:
        while not is_done.is_set():
            consumer.poll(timeout=0.05)

    options: dict[str, Any] = {"group": "readers", "heartbeat_interval": 0.1}
    with hmb.Consumer(servers, topic, **options) as first, hmb.Consumer(servers, topic, **options) as second:
        threads = [threading.Thread(target=poll, args=(consumer,)) for consumer in (first, second)]
        for thread in threads:
            thread.start()
        try:
            until(lambda: first.assignment and second.assignment, "each consumer has a partition")
        finally:
            is_done.set()
            for thread in threads:
                thread.join()


ACTIONS = {"Produce": produce, "Fetch": fetch, "JoinGroup": join_group, "Producer.send": produce}
MAX_FILES = {"Produce": 9, "Fetch": 9, "JoinGroup": 8, "Producer.send": 10}


@pytest.mark.parametrize(("name", "action"), ACTIONS.items())
def test_a_request_makes_the_calls_of_the_tour(name: str, action: Callable[[], None]) -> None:
    hops = tours()[name]
    with recorded_calls() as calls:
        action()
    assert first_missing(hops, calls) is None


@pytest.mark.parametrize(("name", "most"), MAX_FILES.items())
def test_a_tour_has_few_files(name: str, most: int) -> None:
    assert 5 <= len({hop.file for hop in tours()[name]}) <= most


def methods(path: Path) -> Iterator[str]:
    """Yield the methods of the classes in a file, for example `Log.append`."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{it.name}" for it in node.body if isinstance(it, ast.FunctionDef))


def test_the_files_and_methods_between_the_steps_exist() -> None:
    """All files and methods in the docstring of `hmb` exist.

    The docstring refers to a file by the file's path, or by the end of this path.
    """
    text = hmb.__doc__ or ""
    paths = list(ROOT.rglob("*.py"))
    files = set(FILE.findall(text)) - {"tests/test_tours.py"}
    named = {file: [path for path in paths if path.as_posix().endswith(f"/{file}")] for file in files}
    assert [file for file, found in named.items() if not found] == []
    known = {method for found in named.values() for path in found for method in methods(path)}
    assert set(METHOD.findall(text)) - known == set()
