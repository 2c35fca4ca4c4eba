"""The spout: where records of a topic become tuples.

A topology declares one `Spout` for each topic that it reads. It runs one processor for each partition of the topic,
because a partition has one position, and the clock has one offset for each partition.

`convert` makes one tuple of one record, and must be pure: a replay calls it again. If the topology does not need a
record, `convert` returns None. By default (`isolation_level`) a spout reads only committed records, because an aborted
record cannot be removed from a state.

A record that `convert` cannot read stops the topology, because a count that silently leaves records out is wrong. If
`dead_letters` names a topic, the spout sends such a record to this topic and continues. Headers of the dead letter name
its origin and the error. A replay sends the record again, so the dead-letter topic can contain it more than once.

Source: Hailstorm, chapter 3.3, "Spouts". The paper's `convertFn` receives only the value of a record. `convert`
receives the whole record, so it can use the key, the headers and the timestamp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from hmb.client import ConsumerRecord

EventTime = Callable[[Any], int]  # takes a tuple; returns its event time, in ms since 1970


def value_text(record: ConsumerRecord) -> str:
    """Return the record's value as text. This function is the simplest `convert`."""
    text: str = record.value.decode()
    return text


@dataclass(frozen=True)
class Spout:
    """A spout as the user declares it: the topic that it reads, and the function that turns a record into a tuple.

    topic            the topic whose partitions are read
    convert          makes a tuple of a record, or returns None
    offset           the position at which a topology without snapshots begins: "earliest" or "latest"
    isolation_level  "read_committed" or "read_uncommitted"
    dead_letters     the topic for records for which `convert` raises; None stops the topology
    event_time       returns the event time of a tuple in ms; None if the topology has no windows
    allowed_lateness how much older than the newest record of its partition a record may be, in ms
    idle_after       seconds without a record after which a partition no longer holds the event-time watermark back
    """

    topic: str
    convert: Callable[[ConsumerRecord], Any] = value_text
    offset: Literal["earliest", "latest"] = "earliest"
    isolation_level: Literal["read_committed", "read_uncommitted"] = "read_committed"
    dead_letters: str | None = None
    event_time: EventTime | None = None
    allowed_lateness: int = 0
    idle_after: float = 1.0
