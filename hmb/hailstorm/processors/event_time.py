"""Event-time watermarks: the event time up to which all tuples have arrived.

A low water mark is a clock of offsets. Windows close by times. The spout connects both, because only the spout sees all
records of its partition, in order:

    newest(p, o)       the largest event time of the records of partition p below offset o
    late               is a record whose event time is before newest(p, o) - allowed lateness. The spout drops it,
                       counts it and names it.
    time mark of p     newest - allowed lateness: p will send no tuple with an earlier event time

Whether a record is late depends only on the records before it in its own partition. Other partitions and the speed of
the processors have no influence. Every replay therefore finds the same late records, and a batch job over the same
topic does, too.

A spout sends its time mark with its low water mark, and each processor merges the marks of its senders by the minimum.
A bolt's watermark is the minimum over all partitions. It never goes back.

**Idle partitions.** A partition without new records would hold the watermark back forever. After `idle_after` seconds
at the end of its partition a spout sends the time mark IDLE, which is above all times. A later record of this partition
can then be older than the watermark. The bolt drops its contribution to the windows that are closed already. Whether a
partition is idle depends on the time of the run, and a replay may decide otherwise. The bolt therefore saves its
watermark with its state. A replay from this snapshot then finds the same windows closed.

**Worked example**, allowed lateness 10: records with times 100, 105, 97, 120, 109 arrive. 97 is in time (105 - 10 =
95), 109 is late (120 - 10 = 110). The time mark is 110 at the end, and all windows that end at or below 110 can be
dropped.

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
    """The newest event time of one partition, and the number of its late records. Its spout updates both."""

    allowed_lateness: int  # ms
    newest: int = NO_TIME  # ms
    late: int = 0  # number of late records since the topology's first start

    @property
    def mark(self) -> int:
        return self.newest - self.allowed_lateness

    def is_late(self, time: int) -> bool:
        """Record the event time of the next record, and return whether the record is late."""
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
        """Store the time marks of a sender, and advance the watermark."""
        for partition, time in payloads.times.items():
            self._marks[partition][payloads.sender], self._is_known = time, True
        active = [time for time in self.marks().values() if time != IDLE] if payloads.times else []
        if active:  # If all partitions are idle, the watermark does not change.
            self.time = max(self.time, min(active))

    def marks(self) -> dict[TopicPartition, int]:
        """Return the time mark of each partition, which is the minimum of the marks of its upstream processors.

        The dict is empty if the topology has no event times.
        """
        if not self._is_known:
            return {}
        return {partition: min(marks.values()) for partition, marks in self._marks.items()}

