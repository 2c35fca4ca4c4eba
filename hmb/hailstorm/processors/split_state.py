"""The state of a bolt: usually one state S, but two states A and B during a snapshot.

A snapshot has a clock, which contains an offset for each partition. A tuple is below the clock if its own offset is
smaller than the clock's offset for its partition. Any other tuple is above the clock. During a snapshot, the state A
contains the tuples below the clock, and the state B contains the tuples above it. Before and after a snapshot, S is the
whole state. The state of a bolt goes through these stages:
    S           state.a              every tuple enters S
    gathering   state.a = A          tuples below the clock enter A; tuples above it wait
    frozen      state.a = A, b = B   A is complete, a saver thread stores it; tuples above the clock enter B
    S           state.a              when A has been saved: S = merge(A, B), and every tuple enters S again

While the state A of a snapshot is frozen, a saver thread reads A, so no other thread may change it. No tuple needs to
enter A at this time. The low water mark has reached the clock of the snapshot, so all tuples for A have arrived.

A bolt with windows has two further values, and a snapshot also stores them. The first value is the number of late
tuples. During a snapshot, the bolt counts the late tuples below the clock of the snapshot and the late tuples above it
separately. The snapshot stores only the number of the late tuples below its clock.

The second value of a bolt with windows is the event time up to which the bolt has dropped windows. A snapshot stores
this event time, too. The event time needs no second copy during a snapshot, because it changes only when a snapshot
begins.

Source: Hailstorm, chapter 3.4.1, "Updating state with incoming tuples".
"""

from __future__ import annotations

from typing import Any

from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.processors.event_time import NO_TIME


class SplitState:
    """The state of a bolt instance: one state S, or two states A and B during a snapshot.

    A contains the tuples below the clock of the snapshot, and B the tuples above this clock.

    a         S, or A during a snapshot
    b         B while A is frozen, otherwise None
    is_frozen whether A is complete; tuples above the clock then enter B. A test whether `b` is None cannot replace
              this field, because an empty state B can also be None.
    clock     the clock of the snapshot in progress, or None
    closed    windows that end at or below this event time (ms) have been dropped
    """

    def __init__(self, bolt: Bolt) -> None:
        self.a: Any = bolt.monoid.empty()
        self.b: Any = None
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
        """Begin a snapshot at `clock`. Before that, drop the windows that end at or below `watermark`.

        At this moment, all spouts are paused at `clock`, so the watermark comes only from tuples below `clock`. Later
        in the snapshot, the watermark also comes from tuples above `clock`. If the bolt dropped a window because of
        such a tuple, the snapshot would not contain the window. After a crash, a replay from `clock` could contain
        tuples of this window. The bolt would then drop these tuples as late, although they were in time in the first
        run.
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
        """End the snapshot. If the tuples are in two states, merge these states into one."""
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
