"""Event-time watermarks: the event time up to which all tuples have arrived.

A low water mark consists of offsets, but a window closes at an event time. The spout of a partition therefore computes
an event time for its low water mark. Only the spout sees all records of its partition, in order. The spout uses these
definitions:
    newest(p, o)       the largest event time of the records of partition p below offset o
    late               a record is late if its event time is before newest(p, o) - allowed lateness. The spout drops
                       late records, counts them, and logs a warning.
    time mark of p     newest - allowed lateness: p will send no tuple with an earlier event time

Whether a record is late depends only on the records before it in its own partition. Other partitions and the speed of
the processors have no influence. Every replay therefore drops the same late records in the spout, and a batch job over
the same topic drops the same records, too. One exception exists: after a partition was idle, a bolt can drop further
tuples.

A spout sends its time mark together with its low water mark. Each processor keeps the newest time mark of each sender,
and computes the minimum for each partition. The event-time watermark of a bolt is the minimum over all partitions that
are not idle. If all partitions are idle, the watermark does not change. The watermark never goes back.

**Idle partitions.** A partition without new records would hold the watermark back forever. If a spout finds no record
for `idle_after` seconds, it therefore sends the time mark IDLE, which is above all times. When the partition gets a
record again, the event time of this record can be before the watermark. If a window of this record is already closed,
the bolt does not count the record in this window. If all windows of the record are closed, the bolt logs a warning.

A spout decides that a partition is idle at the moment when it reads the partition. In a replay, the spout may decide
differently, so the watermark may differ. In each snapshot, a bolt therefore saves its event-time watermark together
with its state. A replay from this snapshot begins with the same watermark, and so with the same closed windows.

After a partition was idle, a bolt can leave out a record of this partition. A run over the complete topic has no idle
partition, and counts the same record. The results of the two runs then differ. This happens only if a partition pauses
for longer than `idle_after`, and then continues with old event times. If partitions can do this, choose a larger
`idle_after`, for example 3600 seconds. The windows of the other partitions then stay open for this time.

**Worked example.** The allowed lateness is 10, and records with the times 100, 105, 97, 120 and 109 arrive. The record
97 is in time: the newest time before it is 105, and 97 is above 105 - 10 = 95. The record 109 is late: the newest time
before it is 120, and 109 is below 120 - 10 = 110. At the end the time mark is 110, and all windows that end at or below
110 can be dropped.

Source: Akidau et al., "The Dataflow Model" (2015), chapter 2.3, on low watermarks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hmb.client import TopicPartition
from hmb.hailstorm.payload import Payloads

IDLE = 2**62  # ms; above every event time
NO_TIME = -(2**62)  # ms; below every event time


@dataclass
class PartitionTimes:
    """The newest event time of one partition, and the number of its late records. The spout updates both."""

    allowed_lateness: int  # ms
    newest: int = NO_TIME  # ms
    late: int = 0  # the number of late records since the topology's first start

    @property
    def mark(self) -> int:
        return self.newest - self.allowed_lateness

    def is_late(self, time: int) -> bool:
        """Return whether the next record is late. Also update the newest event time of the partition."""
        if time < self.mark:
            self.late += 1
            return True
        self.newest = max(self.newest, time)
        return False


class Watermark:
    """Computes the event-time watermark of a bolt or a sink from the time marks of its upstream processors.

    Invariant: `time` never goes back.
    """

    def __init__(self, upstreams: Mapping[TopicPartition, frozenset[str]]) -> None:
        self.time = NO_TIME  # ms
        self._is_known = False  # whether the spouts have event times
        self._marks = {p: dict.fromkeys(names, NO_TIME) for p, names in upstreams.items()}

    def advance(self, payloads: Payloads) -> None:
        """Store the time marks that these payloads contain, and advance the watermark."""
        for partition, time in payloads.times.items():
            self._marks[partition][payloads.sender], self._is_known = time, True
        active = [time for time in self.marks().values() if time != IDLE] if payloads.times else []
        if active:  # If all partitions are idle, the watermark does not change.
            self.time = max(self.time, min(active))

    def marks(self) -> dict[TopicPartition, int]:
        """Return the time mark of each partition: the minimum of the newest time marks of the upstream processors.

        The dict is empty if the topology has no event times.
        """
        if not self._is_known:
            return {}
        return {partition: min(marks.values()) for partition, marks in self._marks.items()}

