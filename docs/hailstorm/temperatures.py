"""A topology that computes the mean temperature of each city and week."""

import json
from typing import Any

from hmb.client import ConsumerRecord
from hmb.hailstorm import Bolt, IdempotentSink, MapOf, Mean, Spout, Topology, Tumbling, TupleId

WEEK = 7 * 24 * 3600 * 1000  # ms
table: dict[tuple[str, int], float] = {}


def temperature(record: ConsumerRecord) -> tuple[str, int, float] | None:
    """Return a record's city, time (ms) and temperature. Return None if the field `kind` is not "hour"."""
    event = json.loads(record.value)
    return (event["city"], record.timestamp, event["temperature_f"]) if event["kind"] == "hour" else None


def write(_id: TupleId, mean: tuple[Any, float]) -> None:
    table[mean[0]] = mean[1]


weeks = Tumbling(WEEK, MapOf(Mean()))
mean_of_weeks = Bolt.windowed(weeks, time=lambda item: item[1], key=lambda item: item[0], value=lambda item: item[2])
topology = Topology("temperatures")
topology.spout("weather", Spout("weather", temperature, event_time=lambda item: item[1]))
topology.bolt("mean", mean_of_weeks, after="weather", parallelism=2)
topology.sink("table", IdempotentSink(write), after="mean")
