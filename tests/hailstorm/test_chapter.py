"""Tests of the exercise in the chapter on Hailstorm: its topology computes the same means as a batch job."""

from __future__ import annotations

import json
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import pytest

import hmb
from hmb.cli import demo_data
from hmb.client import NewTopic
from hmb.hailstorm import IdempotentSink, run
from hmb.hailstorm.reference import load_topology

PROGRAM = Path(__file__).parents[2] / "docs" / "hailstorm" / "temperatures.py"
WEEK = 7 * 24 * 3600 * 1000  # ms


@pytest.mark.slow
def test_the_mean_temperatures_of_the_chapter_are_those_of_a_batch_job() -> None:
    topology = load_topology(f"{PROGRAM}:topology")
    with hmb.Broker() as broker:
        with hmb.Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("weather", 2, configs={"retention.ms": "-1"})])
        with hmb.Producer(broker.bootstrap_servers) as producer:
            for event in demo_data.events():
                producer.send("weather", event.value, event.key, timestamp=event.timestamp)
        run(topology, broker.bootstrap_servers, until="end")
    sink = topology.nodes["table"].runs
    assert isinstance(sink, IdempotentSink)
    assert sink.write.__globals__["table"] == batch()  # type: ignore[attr-defined]


def batch() -> dict[tuple[str, int], float]:
    """Return the mean temperature of each city and week, computed from all events together."""
    degrees: dict[tuple[str, int], list[Fraction]] = defaultdict(list)
    for event in demo_data.events():
        fields = json.loads(event.value)
        if fields["kind"] == "hour":
            week = event.timestamp // WEEK * WEEK
            degrees[fields["city"], week].append(Fraction(fields["temperature_f"]))
    return {key: float(sum(values) / len(values)) for key, values in degrees.items()}
