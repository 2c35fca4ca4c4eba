"""Holds back the outputs of a sink until no replay can produce them again.

A snapshot at clock C is *complete* when every processor has saved its state at C. No later recovery goes back below C,
so no replay produces the outputs below C again. A sink that holds outputs back writes an output to the outside when the
output's origin is below the clock of a complete snapshot. Until then, the sink saves the output in its own snapshots.
The saved outputs are necessary because bolts that start from clock C never send the outputs below C again. If the sink
lost these outputs in a crash, no processor would have them.

In this example, the sink receives two outputs and then takes part in a snapshot at clock C. The output t comes from an
offset below C, and the output u comes from an offset at or above C:
    arrives      held by the sink     saved in the snapshot at C     when C is complete
    t            t                    t                              the sink writes t, and no longer holds it
    u            t, u                 -                              the sink still holds u

The held outputs are stored in the order of their arrival, also in a snapshot.
"""

from __future__ import annotations

from typing import Any

from hmb.client import TopicPartition
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.payload import Payloads


class HeldOutputs:
    """The outputs that a sink holds back, in the order of arrival, each with its origin: a partition and an offset.

    The sink holds back an output until a complete snapshot includes the output's origin.
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
        """Return the outputs whose origins are below `clock`, as a new object."""
        return self._select(clock, is_included=True)

    def after(self, clock: Clock) -> HeldOutputs:
        """Return the outputs whose origins are above `clock`, as a new object.

        The result also contains the outputs of partitions that are not in `clock`.
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
