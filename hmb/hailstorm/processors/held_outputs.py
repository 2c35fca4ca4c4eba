"""Keeps the outputs of a sink in memory until a snapshot of all processors includes them. Then the sink writes them.

The *clock* C of a snapshot contains one offset for each partition, for example 10 for the partition tags-0.
Outputs computed from the records at offsets 0 to 9 of tags-0 are *below C*.

A snapshot is *complete* when every processor has saved its state. After a crash, the topology never again
processes the records that a complete snapshot covers. The sink can write the outputs of these records, because
no restart repeats them.

In a snapshot at C, a sink saves the outputs below C that it still holds back. For example, a snapshot contains
offsets 0 to 9, and the sink holds back the output for offset 9. After a crash, the bolts continue at offset 10.
They do not send the output for offset 9 again, so the sink must load it from the snapshot.

In this example, a snapshot contains only offsets 0 to 9 of a partition. A sink receives the output t for
offset 9 and the output u for offset 10. The rows show the events in order of time:
    event                                              outputs that the sink then holds
    t arrives                                          t
    u arrives                                          t, u
    the sink saves t in the snapshot                   t, u
    the snapshot is complete, so the sink writes t     u

Outputs wait in a sink in the order in which they arrive, and the sink's snapshots keep this order.
"""

from __future__ import annotations

from typing import Any

from hmb.client import TopicPartition
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.payload import Payloads


class HeldOutputs:
    """The outputs that a sink has not written yet, in the order of arrival.

    Each output has the partition and offset of its record. It waits until a complete snapshot covers this record.
    """

    def __init__(self) -> None:
        self.tuples: list[Any] = []
        self.partitions: list[TopicPartition] = []
        self.offsets: list[int] = []

    def __len__(self) -> int:
        return len(self.tuples)

    def add(self, payloads: Payloads) -> None:
        self.tuples += payloads.tuples
        self.offsets += payloads.offsets
        self.partitions += [payloads.partition] * len(payloads)

    def up_to(self, clock: Clock) -> HeldOutputs:
        """Return a new object that contains only the outputs below `clock`.

        `clock` contains an offset for each partition. An output comes from a record of one partition. The output is
        below `clock` if the offset of this record is smaller than the partition's offset in `clock`.
        """
        return self._select(clock, is_included=True)

    def after(self, clock: Clock) -> HeldOutputs:
        """Return a new object without the outputs below `clock`.

        An output comes from a record of one partition. The output is below `clock` if the record's offset is smaller
        than the partition's offset in `clock`. If `clock` does not contain the partition, the output is not below it.
        """
        return self._select(clock, is_included=False)

    def _select(self, clock: Clock, *, is_included: bool) -> HeldOutputs:
        origins = zip(self.partitions, self.offsets, strict=True)
        rows = [row for row, (p, offset) in enumerate(origins) if (offset < clock.get(p, 0)) is is_included]
        selected = HeldOutputs()
        selected.tuples = [self.tuples[row] for row in rows]
        selected.partitions = [self.partitions[row] for row in rows]
        selected.offsets = [self.offsets[row] for row in rows]
        return selected

    def to_value(self) -> Any:
        """Return the outputs as a value that the codec can encode."""
        return [self.tuples, [p.topic for p in self.partitions], [p.partition for p in self.partitions], self.offsets]

    @classmethod
    def from_value(cls, value: Any) -> HeldOutputs:
        held = cls()
        held.tuples, topics, numbers, held.offsets = value
        held.partitions = [TopicPartition(topic, number) for topic, number in zip(topics, numbers, strict=True)]
        return held
