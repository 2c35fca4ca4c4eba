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

A spout sends a *time mark* with its tuples. The time mark is an event time: the spout will send no more tuples with
earlier event times. A bolt keeps the newest time mark of each sender. For each partition, the bolt sends the minimum of
these marks to the next processors.

The *event-time watermark* of a bolt is the smallest of the newest time marks that the bolt has received. Idle
partitions do not count. If all partitions are idle, the watermark does not change. The watermark never goes back.

**Idle partitions.** A partition without new records would hold the watermark back forever. If a spout finds no record
for `idle_after` seconds, it therefore sends the time mark IDLE, which is above all times. When the partition gets a
record again, the event time of this record can be before the watermark. If a window of this record is already closed,
the bolt does not count the record in this window. If all windows of the record are closed, the bolt logs a warning.

Whether a partition counts as idle depends on the time at which the spout reads it. In a replay, the spout reads the
partition at another time, so the event-time watermark of a bolt may differ from the first run. A bolt therefore saves
its watermark in each snapshot, together with its state. A replay from this snapshot begins with the same watermark, and
so with the same closed windows.

While a partition is idle, the other partitions can close windows. If the idle partition then continues with old event
times, its records belong to closed windows, and the bolt leaves them out. A later run over the complete topic finds no
idle partition, counts these records, and has another result. If partitions can pause like this, choose a larger
`idle_after`, for example 3600 seconds. A partition that pauses for less than this time then keeps its windows open.

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
    """Computes the event-time watermark of a bolt: the event time up to which all tuples have arrived.

    The processors that send tuples to the bolt also send a *time mark* for each partition. A time mark is an event
    time: the sender will send no more tuples of the partition with earlier event times. The watermark is the smallest
    of the newest time marks. Idle partitions do not count.

    Invariant: the watermark `time` never goes back.
    """

    def __init__(self, upstreams: Mapping[TopicPartition, frozenset[str]]) -> None:
        self.time = NO_TIME  # ms
        self._is_known = False  # whether the spouts have event times
        self._marks = {p: dict.fromkeys(names, NO_TIME) for p, names in upstreams.items()}

    def advance(self, payloads: Payloads) -> None:
        """Store the sender's time marks, which `payloads` contains, and advance the watermark.

        A time mark is an event time: the sender will send no more tuples of a partition with earlier event times. The
        watermark is the smallest of the stored time marks. Idle partitions do not count.
        """
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

