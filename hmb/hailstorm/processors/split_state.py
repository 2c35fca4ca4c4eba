"""The state of a bolt: S, or A and B during a snapshot.

    S           state.a              every tuple enters S
    gathering   state.a = A          tuples at or below the clock enter A; tuples above it wait
    frozen      state.a = A, b = B   A is complete, a saver thread stores it; tuples above the clock enter B
    S           state.a              merge(A, B), when A has been saved

While A is frozen, a saver thread reads it, so no other thread changes it. No change is necessary, because the low water
mark has reached the clock, and no tuple for A can arrive.

A bolt also counts late tuples, and it stores the event time up to which it has dropped windows. The count is split as
the state is. The event time belongs to A alone, because it changes only when a snapshot begins.

Source: Hailstorm, chapter 3.4.1, "Updating state with incoming tuples".
"""

from __future__ import annotations

from typing import Any

from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.processors.event_time import NO_TIME


class SplitState:
    """The state of a bolt instance: S, or during a snapshot A (tuples at or below the clock) and B (tuples above it).

    a         S, or A during a snapshot
    b         B while A is frozen, else None
    clock     the clock of the snapshot in progress, or None
    closed    windows that end at or below this event time are dropped, in ms
    """

    def __init__(self, bolt: Bolt) -> None:
        self.a: Any = bolt.monoid.empty()
        self.b: Any = None
        self.clock: Clock | None = None
        self.closed = NO_TIME
        self.late_in_a = self.late_in_b = 0  # numbers of tuples that arrived when all their windows were closed
        self._monoid, self._windows = bolt.monoid, bolt.windows

    @property
    def late(self) -> int:
        return self.late_in_a + self.late_in_b

    @property
    def is_gathering(self) -> bool:
        return self.clock is not None and self.b is None

    def merged(self) -> Any:
        """Return S, or during a snapshot the merged state of A and B. The caller may only read it."""
        return self.a if self.b is None else self._monoid.view(self.a, self.b)

    def split(self, clock: Clock, watermark: int) -> None:
        """Begin a snapshot at a clock. Drop windows that are closed by the event-time watermark first.

        All spouts are paused at `clock` at this moment, so the watermark is that of tuples at or below the clock.
        Windows must not be dropped later, with a watermark of tuples above the clock. A replay from the clock would
        bring back tuples that are in time.
        """
        if self._windows is not None and watermark > self.closed:
            self.closed = watermark
            self.a = self._windows.expire(self.a, watermark)
        self.clock = clock

    def freeze(self) -> None:
        """Note that the state A is complete. All further tuples enter the state B."""
        self.b = self._monoid.empty()

    def join(self) -> None:
        """End the snapshot: merge the states A (before the clock) and B (after it) into one state."""
        if self.b is not None:
            self.a = self._monoid.absorb(self.a, self.b)
        self.late_in_a += self.late_in_b
        self.b, self.clock, self.late_in_b = None, None, 0

    def to_value(self) -> Any:
        """Return A as the codec stores it."""
        return [self._monoid.to_value(self.a), self.closed, self.late_in_a]

    def restore(self, value: Any) -> None:
        """Continue with the state A of a snapshot, as `to_value` returned it."""
        state, self.closed, self.late_in_a = value
        self.a = self._monoid.from_value(state)
