"""Computes low water marks: for each partition, an offset below which all tuples have arrived.

A processor sends a low water mark with its tuples. The mark contains one offset for each partition: the
processor will send no more tuples from records below these offsets. The receiver computes its own mark. For
each partition p, the receiver uses the latest marks of all senders that can send tuples from p:
    low water mark[p] = the smallest offset for p in these marks

This table shows the low water marks of three senders, with one offset for each partition (tags-0, tags-1). The
last row is the mark of the receiver, topn-0:
    sender                 tags-0   tags-1
    count-0                     7       40
    count-1                     9       38
    count-2                     8       41
    low water mark              7       38

The bolt topn-0 with the low water mark (tags-0: 7, tags-1: 38) can still receive tuples from records at offset 7 and
above in partition tags-0, and at offset 38 and above in partition tags-1. It receives no more tuples from records at
smaller offsets.

Source: the Hailstorm paper by Dimson and Ganjoo (2014), chapter 3.4.2, "Low Water Mark", figure 3.
"""

from __future__ import annotations

from collections.abc import Mapping

from hmb.client import TopicPartition
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.payload import Payloads


class LowWaterMarks:
    """Stores the newest low water mark of each upstream processor, and computes the minimum in `clock`.

    A low water mark contains one offset for each partition. `clock` contains the smallest offset of each partition.

    Invariant: an offset in a mark or in `clock` never decreases. If the spouts go back to earlier offsets, the
    processor creates a new `LowWaterMarks` object.
    """

    def __init__(self, upstreams: Mapping[TopicPartition, frozenset[str]], start: Clock) -> None:
        self.clock = Clock({partition: start[partition] for partition in upstreams})
        self._marks = {p: dict.fromkeys(names, start[p]) for p, names in upstreams.items()}

    def advance(self, payloads: Payloads) -> bool:
        """Store a sender's new low water mark. Return True if an offset in `clock` has increased.

        `payloads` contains the sender and its mark, with one offset for each partition. For each partition, `clock`
        contains the smallest offset in the marks of all senders.

        Raises AssertionError if an offset in the new mark is smaller than in the sender's previous mark. This is an
        internal error.
        """
        moved: dict[TopicPartition, int] = {}
        sender = payloads.sender
        for partition, offset in payloads.mark.items():
            marks = self._marks[partition]
            before = marks[sender]
            if offset == before:
                continue
            if offset < before:
                raise AssertionError(f"the mark of {sender} went back in {partition}: from {before} to {offset}")
            marks[sender] = offset
            if before == self.clock[partition] and (lowest := min(marks.values())) > before:
                moved[partition] = lowest
        if moved:
            self.clock = self.clock.moved(moved)
        return bool(moved)
