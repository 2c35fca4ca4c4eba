"""The spout: the node that turns the records of a topic into tuples.

A topology declares one `Spout` for each topic that it reads. At run time, each partition of the topic has its
own spout processor, which stores the next offset to read. A snapshot contains one such offset for each
partition. These offsets together are the *clock* of the snapshot.

The function `convert` makes one tuple from one record. If the topology does not need a record, `convert`
returns None. After a crash, a replay calls `convert` again for the same record. So `convert` must be pure: for
the same record, it always returns the same result.

By default, a spout reads only committed records (`isolation_level`). Suppose that a spout also read the records
of an open transaction, and that the producer then aborted the transaction. The bolts would already have counted
the records, and could not remove them from their counts.

By default, the topology stops if `convert` raises an exception for a record. If the topology continued, its results
would lack this record, and the user would not notice.

If `convert` raises an exception for a record and `dead_letters` names a topic, the spout sends the record to
this topic. The topology continues. Headers of the sent record contain the error, and the partition and offset
of the original record. After a crash, the spout can send the record again.

Source: Hailstorm, chapter 3.3, "Spouts". The paper's `convertFn` receives only the value of a record. `convert`
receives the whole record, so it can use the key, the headers and the timestamp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hmb.client import ConsumerRecord
from hmb.defaults import IsolationLevelName, OffsetName

EventTime = Callable[[Any], int]  # takes a tuple; returns its event time, in ms since 1970


def value_text(record: ConsumerRecord) -> str:
    """Return the record's value as text. This function is the default `convert` of a spout."""
    text: str = record.value.decode()
    return text


@dataclass(frozen=True)
class Spout:
    """A spout as the user declares it: the topic that it reads, and the function that makes the tuples.

    topic             the topic whose partitions the spout reads
    convert           takes a record; returns a tuple, or None if the topology does not need the record
    offset            the position at which the spout begins if no snapshot exists: "earliest" or "latest"
    isolation_level   "read_committed" or "read_uncommitted"
    dead_letters      the topic that receives a record if `convert` fails; if None, the failure stops the topology
    event_time        takes a tuple; returns its event time in ms since 1970. Use None in a topology without windows
    allowed_lateness  how late a record may be, in ms; see below
    idle_after        seconds; after this time without records, the event-time watermark ignores the partition

    For example, if the newest event time of a partition is 10,000 ms and `allowed_lateness` is 2,000 ms, the spout
    drops records with event times below 8,000 ms.
    """

    topic: str
    convert: Callable[[ConsumerRecord], Any] = value_text
    offset: OffsetName = "earliest"
    isolation_level: IsolationLevelName = "read_committed"
    dead_letters: str | None = None
    event_time: EventTime | None = None
    allowed_lateness: int = 0
    idle_after: float = 1.0
