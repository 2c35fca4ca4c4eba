"""The payload: a tuple on its way through the topology, with its origin and the sender's low water mark.

A tuple alone does not show whether it belongs to a snapshot. A *payload* therefore adds the origin of the tuple. The
origin is the partition and the offset of the record from which the spout made the first tuple. When a bolt computes
output tuples from an input tuple, it copies the origin of the input tuple to the output tuples. Every tuple of the
topology can therefore be compared with a clock.

One record may become several tuples at a sink, because a bolt returns zero or more tuples, and because a topology may
have several paths. Four values identify a tuple: its partition, its offset, its path and its *number*. The path names
the nodes that made the tuple. A node can make several tuples from one input, so the number contains one position for
each node of the path. For example, the number (0, 2) means: the first output of the first node, then the third output
of the second node. A replay makes a tuple with the same identity again. A sink that overwrites an output with the same
identity depends on this property.

A sender puts the payloads of one partition into columns, because one Python object for each payload would take more
time than a bolt's work on this payload. These are the columns and fields of one `Payloads` object:
    sender      count-1                          the processor that sends
    path        (tags, count)                    the nodes that made these tuples
    partition   tags-0                           the partition from which all these tuples originate
    offsets     [7, 8, 10]                       the offset from which each tuple originates, ascending
    numbers     None, or [(0, 0), (0, 1) ...]    for each tuple: its output number (0, 1 ...) at each node of `path`;
                                                 None: each node made exactly one tuple from each input
    tuples      [("love", 101), ("sun", 3) ...]
    mark        tags-0: 11, tags-1: 40           the sender's low water mark after these payloads
    times       tags-0: 1398902400000            the sender's time mark of each partition, an event time in ms

A `Payloads` object may have no tuples. The sender then has no tuples for this receiver, and only reports its progress
by the low water mark.

Source: Hailstorm, chapter 3.3, "Spouts", and chapter 3.4.2, "Low Water Mark".
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from hmb.client import TopicPartition
from hmb.hailstorm.clock import Clock

Number = tuple[int, ...]


class TupleId(NamedTuple):
    """The identity of a tuple. Every replay gives the tuple the same identity, and no other tuple has this identity."""

    topic: str
    partition: int
    offset: int
    path: str  # the names of the nodes that made the tuple, joined by "/"
    number: Number

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}@{self.offset} {self.path} {'.'.join(map(str, self.number))}"


@dataclass(slots=True)
class Payloads:
    """The payloads of one partition that one processor sends to another processor.

    Invariants: `offsets` and `tuples` have the same length. `numbers` also has this length, or is None. `offsets` are
    in ascending order. `mark` is a clock: all later tuples of this sender come from records at or above this clock.
    """

    epoch: int
    sender: str
    path: tuple[str, ...]
    partition: TopicPartition
    mark: Clock
    tuples: list[Any] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    numbers: list[Number] | None = None
    times: dict[TopicPartition, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.tuples)

    def ids(self) -> list[TupleId]:
        """Return the identity of each tuple: its partition, offset, path and number."""
        topic, partition = self.partition
        path = "/".join(self.path)
        numbers = self.numbers or [(0,) * len(self.path)] * len(self.tuples)
        return [TupleId(topic, partition, offset, path, n) for offset, n in zip(self.offsets, numbers, strict=True)]

    def slice(self, begin: int, end: int) -> Payloads:
        """Return a copy with the same mark and times, but only with the rows from `begin` to `end` - 1."""
        rows = slice(begin, end)
        numbers = self.numbers and self.numbers[rows]
        return replace(self, tuples=self.tuples[rows], offsets=self.offsets[rows], numbers=numbers)

    def select(self, rows: list[int]) -> tuple[list[Any], list[int], list[Number] | None]:
        """Return the tuples, offsets and numbers of these rows."""
        tuples, offsets, numbers = self.tuples, self.offsets, self.numbers
        return [tuples[n] for n in rows], [offsets[n] for n in rows], numbers and [numbers[n] for n in rows]

    def to_value(self) -> list[Any]:
        """Return the payloads as a value that the codec can encode."""
        times = [(topic, number, time) for (topic, number), time in self.times.items()]
        origin = (self.epoch, self.sender, self.path, tuple(self.partition))
        return [origin, self.mark.to_value(), times, self.tuples, self.offsets, self.numbers]

    @classmethod
    def from_value(cls, value: list[Any]) -> Payloads:
        (epoch, sender, path, partition), mark, times, tuples, offsets, numbers = value
        by_partition = {TopicPartition(topic, number): time for topic, number, time in times}
        origin = (epoch, sender, path, TopicPartition(*partition))
        return cls(*origin, Clock.from_value(mark), tuples, offsets, numbers, by_partition)
