"""The state of a bolt: usually one state S, but two states A and B during a snapshot.

A snapshot has a clock, which contains an offset for each partition. A tuple is below the clock if its own offset is
smaller than the clock's offset for its partition. Any other tuple is above the clock. During a snapshot, the state A
contains the tuples below the clock, and the state B contains the tuples above it. Before and after a snapshot, S is the
whole state. The state of a bolt goes through these stages:
    S           state.a              every tuple enters S
    gathering   state.a = A          tuples below the clock enter A; tuples above it wait
    frozen      state.a = A, b = B   A is complete, a saver thread stores it; tuples above the clock enter B
    S           state.a              when A has been saved: S = merge(A, B), and every tuple enters S again

The state A contains the tuples that belong to a snapshot. While a saver thread saves A, no other thread may change A.
The bolt therefore begins to save A only after all tuples for A have arrived: the bolt's low water mark has reached the
clock of the snapshot.

A bolt with windows counts the late tuples, which arrive after all their windows are closed. A snapshot contains this
number, too, but only for the late tuples that belong to the snapshot. While the bolt saves a snapshot, it therefore
counts the late tuples that do not belong to the snapshot in a second counter.

A bolt with windows stores an event time: the bolt has dropped the windows that end at or before this time. A snapshot
contains this event time, too. The bolt drops windows only when a snapshot begins, so the event time never changes
during a snapshot.

Source: Hailstorm, chapter 3.4.1, "Updating state with incoming tuples".
"""

from __future__ import annotations

from typing import Any

from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.processors.event_time import NO_TIME


class SplitState:
    """The state of a bolt instance. While the bolt saves a snapshot, the state has two parts.

    a           the state; during a snapshot, only the part that belongs to the snapshot
    b           the part that does not belong to the snapshot; None if `is_frozen` is False
    is_frozen   whether `a` contains all tuples of the snapshot and is now being saved; new tuples then enter `b`
    clock       the clock of the snapshot in progress, or None
    closed      an event time (ms): windows that end at or before this time have been dropped
    """

    def __init__(self, bolt: Bolt) -> None:
        self.a: Any = bolt.monoid.empty()
        self.b: Any = None
        # The test `b is not None` cannot replace `is_frozen`. In a bolt without state, `b` stays None even while a
        # snapshot is being saved.
        self.is_frozen = False
        self.clock: Clock | None = None
        self.closed = NO_TIME
        self.late_in_a = self.late_in_b = 0  # numbers of tuples that came after all their windows were closed
        self._monoid, self._windows = bolt.monoid, bolt.windows

    @property
    def late(self) -> int:
        return self.late_in_a + self.late_in_b

    @property
    def is_gathering(self) -> bool:
        return self.clock is not None and not self.is_frozen

    def merged(self) -> Any:
        """Return a state with all tuples that have entered this object. The caller must not change this state.

        While a saver thread saves a snapshot, these tuples are in two states: one state contains the tuples below the
        clock of the snapshot, and the other state contains the tuples above this clock. The method then merges the two
        states. At any other time, one state has all tuples.
        """
        return self._monoid.view(self.a, self.b) if self.is_frozen else self.a

    def split(self, clock: Clock, watermark: int) -> None:
        """Begin a snapshot at `clock`. Before that, drop the windows that end at or before the event time `watermark`.

        At this moment, each spout is paused at its offset in `clock`, so `watermark` depends only on tuples that belong
        to the snapshot. A later watermark also depends on tuples that do not belong to the snapshot. After a crash, a
        replay sends these tuples again, and their windows must still be open. The bolt therefore drops windows only at
        this moment.
        """
        if self._windows is not None and watermark > self.closed:
            self.closed = watermark
            self.a = self._windows.expire(self.a, watermark)
        self.clock = clock

    def freeze(self) -> None:
        """Mark the state for the snapshot as complete: it contains all tuples below the clock of the snapshot.

        From now on, tuples enter a second, empty state.
        """
        self.b, self.is_frozen = self._monoid.empty(), True

    def join(self) -> None:
        """End the snapshot. If the state has two parts, merge them into one state again.

        The first part belongs to the snapshot. The second part contains the tuples that arrived during the save.
        """
        if self.is_frozen:
            self.a = self._monoid.absorb(self.a, self.b)
        self.late_in_a += self.late_in_b
        self.b, self.is_frozen, self.clock, self.late_in_b = None, False, None, 0

    def to_value(self) -> Any:
        """Return the content of this bolt's snapshot, as a value that the codec can encode.

        The value contains the state for the snapshot, the event time up to which windows were dropped, and the number
        of late tuples.
        """
        return [self._monoid.to_value(self.a), self.closed, self.late_in_a]

    def restore(self, value: Any) -> None:
        """Continue with the state of a stored snapshot. `value` is what `to_value` returned for this snapshot."""
        state, self.closed, self.late_in_a = value
        self.a = self._monoid.from_value(state)
