"""A payload: a tuple on its way through the topology, with the partition and offset of its record.

Each tuple comes from a record of a partition. The partition and the offset of this record are the tuple's *origin*. A
*payload* is a tuple together with its origin. When a bolt computes output tuples from an input tuple, they get the
origin of the input tuple.

The origin of a tuple decides whether a snapshot includes the tuple. Each snapshot has a *clock*, which contains
one offset for each partition. If the clock contains the offset 10 for the partition tags-0, the snapshot includes
the tuples from the offsets 0 to 9 of tags-0, but no later tuples of tags-0.

One record can lead to several tuples at a sink: a bolt can return several tuples, and a topology can have several
paths. Four values therefore identify a tuple: its partition, its offset, its path and its *number*. The path names
the nodes that made the tuple. The number contains one index for each node of the path. For example, the number
(0, 2) means: the first output of the first node, then the third output of the second node.

If a tuple is replayed, it has the same identity as before. A sink can therefore recognize the tuple, and overwrite
its earlier output instead of adding a second one.

Creating a Python object for each payload would take longer than a bolt's work on the payload. A sender
therefore puts many payloads of one partition into the lists of one `Payloads` object. This example shows its
most important fields:
    sender      count-1                                  the processor that sends the object
    path        (tags, count)                            the nodes that made the tuples, in this order
    partition   tags-0                                   the partition of the tuples' records
    offsets     [7, 7, 10]                               for each tuple: the offset of its record, ascending
    numbers     [(0, 0), (0, 1), (0, 0)]                 for each tuple: one index for each node of `path`
    tuples      [("love", 101), ("sun", 3), ("sun", 4)]  the tuples themselves
    mark        tags-0: 11, tags-1: 40                   the low water mark: one offset for each partition
    times       tags-0: 1398902400000                    the sender sends no more tuples with earlier times (ms)

In the example, `count` made two tuples from the record at offset 7, with the indexes 0 and 1.

After a sender has sent a low water mark, its tuples come only from offsets at or above the mark.

For example, a snapshot contains offsets 0 to 9 of a partition. When the marks of all senders are at least 10,
all tuples from these offsets have arrived. The receiver needs the marks of all senders, so even a sender
without tuples sends a `Payloads` object with its mark.

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
    """Tuples from the same partition that one processor sends to another processor.

    - `path` contains the names of the nodes that made the tuples, for example ("tags", "count").
    - `offsets` contains, for each tuple, the offset of the record from which the tuple comes. These offsets are in
      ascending order.
    - `numbers` contains, for each tuple, one index for each node of `path`. Indexes begin at 0. For example, (0, 2)
      stands for the third output that `count` made from the first output of `tags`.
    - `numbers` is None if every node made exactly one output from each input.
    - `mark` contains one offset for each partition. All later tuples of this sender come from records at or above
      these offsets.

    The lists `tuples`, `offsets` and `numbers` have the same length.
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
        """Return a list with one `TupleId` for each tuple: an identity that stays the same in every replay."""
        topic, partition = self.partition
        path = "/".join(self.path)
        numbers = self.numbers or [(0,) * len(self.path)] * len(self.tuples)
        return [TupleId(topic, partition, offset, path, n) for offset, n in zip(self.offsets, numbers, strict=True)]

    def slice(self, begin: int, end: int) -> Payloads:
        """Return a copy with the items `begin` to `end` - 1 of the lists `tuples`, `offsets` and `numbers`."""
        rows = slice(begin, end)
        numbers = self.numbers and self.numbers[rows]
        return replace(self, tuples=self.tuples[rows], offsets=self.offsets[rows], numbers=numbers)

    def select(self, rows: list[int]) -> tuple[list[Any], list[int], list[Number] | None]:
        """Return the lists `tuples`, `offsets` and `numbers` with only the entries at the indexes in `rows`."""
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
