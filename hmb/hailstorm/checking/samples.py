"""Checks sample records: finds dead letters (records that a spout cannot convert), and the range of event times.

A spout reads the records of a topic, and its function `convert` makes a tuple from each record. If `convert` raises an
error for a record, this record is a *dead letter*.

The function `event_times` returns the smallest and the largest event time of each spout. With these times, a
user can find a common mistake. A spout's function `event_time` must return milliseconds since 1970. If it
returns seconds, all times are in January 1970.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hmb.hailstorm.simulation import Partitions
from hmb.hailstorm.spout import Spout
from hmb.hailstorm.topology import Topology


def dead_letters(topology: Topology, records: Mapping[str, Partitions]) -> dict[str, list[str]]:
    """Return a dict: name of a spout -> error texts for the records that the spout cannot convert.

    For these records (dead letters), the spout's function `convert` raises an error. The dict contains only spouts
    with dead letters.
    """
    found = {
        name: [error for _, error in _converted(spout, records) if error is not None]
        for name, spout in topology.spouts.items()
    }
    return {name: errors for name, errors in found.items() if errors}


def event_times(topology: Topology, records: Mapping[str, Partitions]) -> dict[str, tuple[int, int]]:
    """Return the smallest and the largest event time (ms) of each spout that has a function `event_time`."""
    found = {}
    for name, spout in topology.spouts.items():
        if spout.event_time is not None:
            times = [spout.event_time(item) for item, _ in _converted(spout, records) if item is not None]
            if times:
                found[name] = min(times), max(times)
    return found


def _converted(spout: Spout, records: Mapping[str, Partitions]) -> Iterator[tuple[Any, str | None]]:
    """Yield (tuple, None) for each record of a spout. If `convert` raises an error, yield (None, error text)."""
    for record in (record for log in records[spout.topic] for record in log):
        try:
            yield spout.convert(record), None
        except Exception as error:  # noqa: BLE001  # `convert` can raise anything; the record becomes a dead letter.
            where = f"{record.topic}-{record.partition} at offset {record.offset}"
            yield None, f"{type(error).__name__} for {where}: {error}"
