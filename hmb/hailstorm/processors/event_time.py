"""Event-time watermarks: a bolt expects no tuples with event times before its watermark.

A *low water mark* contains one offset for each partition. The sender of the mark sends no more tuples from
records below these offsets. But a window ends at an event time, not at an offset.

The spout of a partition computes a *time mark*: the spout sends no more tuples with event times before this
mark. Only the spout can do this, because only the spout reads all the partition's records in order. The spout
uses these definitions:
    newest             the latest event time of all records that the spout has read from the partition
    allowed lateness   the largest accepted difference (ms) between `newest` and the event time of a record
    time mark          newest - allowed lateness
    late record        a record whose event time is before the time mark; the spout drops late records, counts
                       them, and logs a warning

Whether a record is late depends only on the earlier records of the same partition. It does not depend on other
partitions, or on the speed of the processors. In every replay, the spout therefore drops the same late records.
A batch job that uses the same rule drops them, too.

A bolt can drop further tuples after a partition was idle (see "Idle partitions").

A spout sends its time mark with its tuples. A bolt stores the newest time mark of each sender and partition. For
each partition, the bolt sends the minimum of these marks to the next processors. For example, if two senders
report 12:00 and 12:05, the bolt sends 12:00.

The *event-time watermark* of a bolt is the earliest time mark of all partitions that are not idle. The bolt
expects no more tuples with earlier event times. The watermark never goes back. If all partitions are idle, it
does not change.

**Idle partitions.** If a partition gets no new records, its time mark does not change, and the watermark cannot
pass it. When a spout has found no record for `idle_after` seconds, it sends the time mark IDLE. The watermark
then ignores the partition until the spout finds a record again.

While a partition is idle, a bolt can close windows. The partition's next record can belong to several windows,
and the bolt ignores the record in closed windows. If all windows of the record are closed, the bolt logs a
warning.

In a later run over the whole topic, all records already exist, so no partition is idle. The results can then
differ from the results of the first run. To prevent this, choose an `idle_after` that is longer than the
pauses of the partitions, for example 3600 seconds.

When a snapshot begins, a bolt closes all windows that end at or before its watermark. Idle partitions do not
hold the watermark back. In a replay, the same partitions can have records with early event times. The
watermark would then be lower, and closed windows would be open again. Each snapshot therefore contains the
watermark, so that a replay begins with the same closed windows.

**Worked example.** The allowed lateness is 10 ms. Records with the event times 100, 105, 97, 120 and 109 ms
arrive in this order. The record 97 is in time: the newest time so far is 105, and 97 is above 105 - 10 = 95.
The record 109 is late: the newest time is now 120, and 109 is below 120 - 10 = 110.

The partition's time mark is now 110 ms. If no other partition exists, bolts can drop all windows that end at or
before 110 ms.

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
        """Return whether a record with the event time `time` is late.

        Call this method once for each record, in order. It counts the late records, and updates the newest event
        time.
        """
        if time < self.mark:
            self.late += 1
            return True
        self.newest = max(self.newest, time)
        return False


class Watermark:
    """The watermark of a bolt: the bolt expects no more tuples with event times before `time`.

    Processors that send tuples to the bolt report *time marks*. After the time mark 12:00 for a partition, a
    processor sends no more tuples of this partition with earlier event times. A new mark replaces the processor's
    old mark.

    `time` is the earliest mark of all processors and partitions. Idle partitions do not count.

    Invariant: `time` never goes back.
    """

    def __init__(self, upstreams: Mapping[TopicPartition, frozenset[str]]) -> None:
        self.time = NO_TIME  # ms
        self._is_known = False  # whether at least one time mark has arrived
        self._marks = {p: dict.fromkeys(names, NO_TIME) for p, names in upstreams.items()}

    def advance(self, payloads: Payloads) -> None:
        """Store the time marks from `payloads`, and move the watermark `time` forward if possible."""
        for partition, time in payloads.times.items():
            self._marks[partition][payloads.sender], self._is_known = time, True
        active = [time for time in self.marks().values() if time != IDLE] if payloads.times else []
        if active:  # If all partitions are idle, the watermark does not change.
            self.time = max(self.time, min(active))

    def marks(self) -> dict[TopicPartition, int]:
        """Return the minimum of the senders' newest time marks for each partition.

        The result is empty if no time marks have arrived. For example, if the newest time marks of two senders
        are 12:00 and 12:05, the minimum is 12:00.
        """
        if not self._is_known:
            return {}
        return {partition: min(marks.values()) for partition, marks in self._marks.items()}
