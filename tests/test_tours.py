"""Tests of the tours in the docstring of `hmb`.

The test records the calls of a real request (tracing.py). It must find the hops of a tour among these calls, in the
same order.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import hmb
from tests.tracing import Call, first_missing, recorded_calls

TOUR = re.compile(r"^(?P<name>.+), a tour of at most (?P<files>\d+) files:\n\n(?P<hops>(?:.+\n)+)", re.MULTILINE)
HOP = re.compile(r"^\d+\. +`(?P<file>[\w/]+\.py)` +`(?P<function>[\w.]+)`", re.MULTILINE)


def tours() -> dict[str, list[Call]]:
    """Return the hops of each tour, by the tour's name."""
    found = TOUR.finditer(hmb.__doc__ or "")
    return {tour["name"]: [Call(*hop) for hop in HOP.findall(tour["hops"])] for tour in found}


def produce() -> None:
    """Append enough batches to one partition for an entry in its offset index."""
    with hmb.Broker() as broker, hmb.Producer(broker.bootstrap_servers, acks="all") as producer:
        for _ in range(3):
            producer.send("t", bytes(5000)).result()


def fetch() -> None:
    """Read one record."""
    with hmb.Broker() as broker:
        with hmb.Producer(broker.bootstrap_servers) as producer:
            producer.send("t", b"value").result()
        with hmb.Consumer(broker.bootstrap_servers, "t", until="end") as consumer:
            assert [record.value for record in consumer] == [b"value"]


def join_group() -> None:
    """Let one member join a group, so that it gets all partitions of a topic."""
    with hmb.Broker(config={"group.initial.rebalance.delay.ms": "0"}) as broker:
        with hmb.Producer(broker.bootstrap_servers) as producer:
            producer.send("t", b"value").result()
        with hmb.Consumer(broker.bootstrap_servers, "t", group="g") as consumer:
            while not consumer.poll(timeout=0.1):
                pass


ACTIONS = {"Produce": produce, "Fetch": fetch, "JoinGroup and SyncGroup": join_group, "Producer.send": produce}
MOST_FILES = {"Produce": 9, "Fetch": 9, "JoinGroup and SyncGroup": 8, "Producer.send": 10}


@pytest.mark.parametrize(("name", "action"), ACTIONS.items())
def test_a_request_makes_the_calls_of_the_tour(name: str, action: Callable[[], None]) -> None:
    hops = tours()[name]
    with recorded_calls() as calls:
        action()
    assert first_missing(hops, calls) is None


@pytest.mark.parametrize(("name", "most"), MOST_FILES.items())
def test_a_tour_has_few_files(name: str, most: int) -> None:
    assert 5 <= len({hop.file for hop in tours()[name]}) <= most
