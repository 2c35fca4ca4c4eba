"""A clock describes how far a topology has read its input: it contains one offset for each partition.

A topology reads several partitions, and their records have no common order. Suppose that a bolt counts the records of
two partitions. At 12:00:05, it has counted 9 records of one partition and 2 of the other. In a second run, the numbers
at 12:00:05 can be 4 and 7. A time therefore does not define a state, but a *clock* does. A clock contains one offset
for each partition. The state at a clock is the state after exactly the records below these offsets.

Each tuple carries the partition and the offset of its record. Suppose that a snapshot includes the records of
partition tags-0 below offset 4. Every processor can then decide alone that a tuple of tags-0 at offset 3
belongs to the snapshot. The processors need no locks, and do not ask each other.

`C[p]` is the *next* offset of partition p: the first offset that clock C does not include. A tuple from partition p at
offset o is below C if o < C[p]. In this example, C[tags-0] is 4, so the record at offset 3 is included, and the
record at offset 4 is not:
    partition     records at offsets       C[p]    included in C
    tags-0        0  1  2  3  4  5  6       4       0, 1, 2, 3
    tags-1        (empty)                   0       nothing
    tags-2        0  1  (2: a marker)       3       0, 1

In the Hailstorm paper, a clock contains the *last* included offset of each partition. HMB stores the *next*
offset instead, for three reasons:
- An empty partition needs no special value. Its next offset is its first offset, for example 0.
- Some offsets have no record, because they belong to transaction markers or to records that compaction has
  removed. They need no special rule: the clock moves past them like past other offsets.
- Kafka also uses the next offset, both for the position of a consumer and for committed offsets.

Clocks are only partially ordered. C <= D holds if C[p] <= D[p] for every partition p. For the two clocks (4, 0) and (3,
1), neither (4, 0) <= (3, 1) nor (3, 1) <= (4, 0) holds.

Source: the Hailstorm paper (chapter 3.3.1, "Clock", and reference 12: Jackson, "Exactly Once Semantics"). The
Kafka 0.7 design, "Consumer state", also describes a reader's state as a set of offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Self

from hmb.client import TopicPartition

EncodedClock = list[tuple[str, int, int]]  # topic, partition, offset


class Clock(Mapping[TopicPartition, int]):
    """A point in the input of a topology: for each partition, the next offset to read. A clock never changes.

    Invariants: offsets are not negative. The operators `<=` and `<` compare only clocks of the same partitions.
    """

    __slots__ = ("_hash", "_offsets")

    def __init__(self, offsets: Mapping[TopicPartition, int] | Iterable[tuple[TopicPartition, int]] = ()) -> None:
        self._offsets: dict[TopicPartition, int] = dict(offsets)
        self._hash: int | None = None
        if any(offset < 0 for offset in self._offsets.values()):
            raise ValueError(f"the offset of a partition in a clock must not be negative: {self}")

    def __getitem__(self, partition: TopicPartition) -> int:
        return self._offsets[partition]

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._offsets)

    def __len__(self) -> int:
        return len(self._offsets)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._offsets.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Clock) and self._offsets == other._offsets

    def __le__(self, other: Clock) -> bool:
        """Return whether every offset is at or below the offset of the same partition in `other`.

        Raises ValueError if the two clocks do not have the same partitions.
        """
        if self._offsets.keys() != other._offsets.keys():
            raise ValueError(f"clocks of different partitions cannot be compared: {self} and {other}")
        return all(offset <= other._offsets[partition] for partition, offset in self._offsets.items())

    def __lt__(self, other: Clock) -> bool:
        return self <= other and self != other

    def includes(self, partition: TopicPartition, offset: int) -> bool:
        """Return whether `offset` is smaller than the offset that this clock contains for `partition`."""
        return offset < self._offsets[partition]

    def has_reached(self, goal: Clock) -> bool:
        """Return whether each offset of this clock is at or above the offset of the same partition in `goal`.

        The method ignores partitions that are only in `goal`. For example, the clock (tags-0: 7) has reached the goal
        (tags-0: 7, tags-1: 40).

        A processor calls this method to check whether it has received all tuples for a snapshot.
        """
        return all(offset >= goal._offsets[partition] for partition, offset in self._offsets.items())

    def minimum(self, other: Clock) -> Clock:
        """Return a clock with the lower of the two offsets of each partition.

        If only one of the two clocks has a partition, the result has the offset from this clock.
        """
        return Clock(
            self._offsets
            | {p: min(offset, self._offsets.get(p, offset)) for p, offset in other._offsets.items()}
        )

    def moved(self, offsets: Mapping[TopicPartition, int]) -> Clock:
        """Return a copy of this clock with the new offsets in `offsets`. The other partitions keep their offsets."""
        return Clock({**self._offsets, **offsets})

    def to_value(self) -> EncodedClock:
        """Return the offsets of this clock as a sorted list with one (topic, partition, offset) for each partition."""
        return [(partition.topic, partition.partition, self._offsets[partition]) for partition in sorted(self._offsets)]

    @classmethod
    def from_value(cls, value: EncodedClock) -> Self:
        return cls((TopicPartition(topic, number), offset) for topic, number, offset in value)

    def __str__(self) -> str:
        return "(" + ", ".join(f"{p.topic}-{p.partition}: {self._offsets[p]}" for p in sorted(self._offsets)) + ")"

    def __repr__(self) -> str:
        return f"Clock{self}"
