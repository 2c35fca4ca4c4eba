"""The clock: how far each partition has been read, as one value that every processor can compare.

A topology reads several partitions, and messages of different partitions overtake each other on their way through it.
"The state of count-0 at 12:00:05" is therefore not well defined. A *clock* defines a state exactly. It holds one offset
for each partition that feeds the topology, and "the state at clock C" is the state after exactly the records below
these offsets. Processors can save their states at the same clock without locks and without talking to each other,
because each tuple carries the partition and the offset that it comes from.

`C[p]` is the *next* offset: the first one that is not included. A tuple from partition p at offset o is at or below C
if o < C[p]:

    partition     records at offsets       C[p]    included in C
    tags-0        0  1  2  3  4  5  6       4       0, 1, 2, 3
    tags-1        (empty)                   0       nothing
    tags-2        0  1  (2: a marker)       3       0, 1

In the paper, the clock contains the *last* offset that is included. The next offset is better for three reasons. An
empty partition needs no special value: its next offset is its start, here 0. Offsets without records (transaction
markers, compacted records) need no special rule: the clock passes them when the spout passes them. And Kafka uses the
next offset, too, for the position of a consumer and for committed offsets.

Clocks are only partially ordered. C <= D holds if C[p] <= D[p] for every partition p. Of the clocks (4, 0) and (3, 1)
neither is at or below the other.

Source: Hailstorm, chapter 3.3.1, "Clock"; Jackson, "Exactly Once Semantics" (the paper's reference 12); for the vector
of offsets as the state of a reader also Kafka 0.7 design, "Consumer state".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Self

from hmb.client import TopicPartition

EncodedClock = list[tuple[str, int, int]]  # topic, partition, offset


class Clock(Mapping[TopicPartition, int]):
    """A point in the input of a topology: for each partition, the offset of the next record. A clock never changes.

    Invariants: offsets are not negative; two clocks are compared only if they have the same partitions.
    """

    __slots__ = ("_hash", "_offsets")

    def __init__(self, offsets: Mapping[TopicPartition, int] | Iterable[tuple[TopicPartition, int]] = ()) -> None:
        self._offsets: dict[TopicPartition, int] = dict(offsets)
        self._hash: int | None = None
        if any(offset < 0 for offset in self._offsets.values()):
            raise ValueError(f"a clock has no negative offsets: {self}")

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
        """Return whether every offset is at or below that of `other`. Raises ValueError if the partitions differ."""
        if self._offsets.keys() != other._offsets.keys():
            raise ValueError(f"clocks of different partitions cannot be compared: {self} and {other}")
        return all(offset <= other._offsets[partition] for partition, offset in self._offsets.items())

    def __lt__(self, other: Clock) -> bool:
        return self <= other and self != other

    def includes(self, partition: TopicPartition, offset: int) -> bool:
        """Return whether a tuple from `partition` at `offset` is at or below this clock."""
        return offset < self._offsets[partition]

    def has_reached(self, goal: Clock) -> bool:
        """Return whether each partition of this clock is at or above its offset in `goal`.

        `goal` may have further partitions. A processor that only some partitions reach compares its low water mark with
        the clock of the whole topology in this way.
        """
        return all(offset >= goal._offsets[partition] for partition, offset in self._offsets.items())

    def minimum(self, other: Clock) -> Clock:
        """Return the lower offset of each partition; a partition that only one of the two has keeps its offset."""
        return Clock(
            self._offsets
            | {p: min(offset, self._offsets.get(p, offset)) for p, offset in other._offsets.items()}
        )

    def moved(self, offsets: Mapping[TopicPartition, int]) -> Clock:
        """Return a copy of this clock in which the partitions in `offsets` have these offsets."""
        return Clock({**self._offsets, **offsets})

    def to_value(self) -> EncodedClock:
        """Return the clock as the codec stores it: `[(topic, partition, offset)]`, sorted."""
        return [(partition.topic, partition.partition, self._offsets[partition]) for partition in sorted(self._offsets)]

    @classmethod
    def from_value(cls, value: EncodedClock) -> Self:
        return cls((TopicPartition(topic, number), offset) for topic, number, offset in value)

    def __str__(self) -> str:
        return "(" + ", ".join(f"{p.topic}-{p.partition}: {self._offsets[p]}" for p in sorted(self._offsets)) + ")"

    def __repr__(self) -> str:
        return f"Clock{self}"
