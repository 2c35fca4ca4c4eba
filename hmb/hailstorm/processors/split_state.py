"""While a thread saves the state of a bolt, the bolt collects new tuples in a second state.

The clock of a snapshot contains one offset for each partition. Tuples from records below these offsets belong
to the snapshot. All other tuples are *later* tuples. Normally, a bolt has one state, S. During a snapshot, S is
called A, and later tuples enter a second state B:
    stage       state              tuples
    normal      S                  all tuples enter S
    gathering   A (was S)          tuples of the snapshot enter A; later tuples wait
    frozen      A and B            A is complete, and a thread saves it; later tuples enter B
    normal      S = merge(A, B)    A has been saved; all tuples enter S

The snapshot's state must not change while a thread saves it. So the save begins only after all tuples of the
snapshot have arrived. The bolt's *low water mark* contains one offset for each partition: no more tuples from
smaller offsets will arrive. For each partition, the mark must reach the offset in the snapshot's clock.

A bolt with windows counts late tuples. A tuple is late if all its windows are already closed. A snapshot
contains the number of late tuples. Late tuples that arrive during the save do not belong to the snapshot, so a
second counter counts them.

A bolt with windows drops old windows. It remembers an event time, and has dropped all windows that end at or before
this time. A snapshot also contains this event time. The bolt drops windows only when a snapshot begins, so the event
time does not change during a snapshot.

Source: Hailstorm, chapter 3.4.1, "Updating state with incoming tuples".
"""

from __future__ import annotations

from typing import Any

from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.processors.event_time import NO_TIME


class SplitState:
    """The state of a bolt instance. While the bolt saves a snapshot, the state has two parts, `a` and `b`.

    a           the whole state; during a save, only the part that belongs to the snapshot
    b           during a save, the part with the newer tuples; at all other times, None
    is_frozen   True during a save: new tuples enter `b`, and `a` does not change
    clock       the clock of the snapshot in progress (an offset for each partition), or None
    closed      an event time (ms): the bolt has dropped all windows that end at or before this time
    """

    def __init__(self, bolt: Bolt) -> None:
        self.a: Any = bolt.monoid.empty()
        self.b: Any = None
        # During a save, `b` normally contains a state. In a bolt without state, `b` stays None, so only this flag shows
        # the save.
        self.is_frozen = False
        self.clock: Clock | None = None
        self.closed = NO_TIME
        self.late_in_a = self.late_in_b = 0  # numbers of tuples that arrived after all their windows had closed
        self._monoid, self._windows = bolt.monoid, bolt.windows

    @property
    def late(self) -> int:
        return self.late_in_a + self.late_in_b

    @property
    def is_gathering(self) -> bool:
        return self.clock is not None and not self.is_frozen

    def merged(self) -> Any:
        """Return the whole state of the bolt. The caller must not change this state.

        While a saver thread saves a snapshot, the state has two parts: the tuples that belong to the snapshot, and the
        tuples that arrived later. The method then returns both parts as one state.
        """
        return self._monoid.view(self.a, self.b) if self.is_frozen else self.a

    def split(self, clock: Clock, watermark: int) -> None:
        """Begin a snapshot at `clock`. Drop the windows that end at or before the event time `watermark`.

        The bolt drops windows only during this call, because all spouts are paused. They have not yet read records
        after the snapshot, so those records close no windows in the snapshot. If the topology restarts from the
        snapshot, the windows of those records are still open.
        """
        if self._windows is not None and watermark > self.closed:
            self.closed = watermark
            self.a = self._windows.expire(self.a, watermark)
        self.clock = clock

    def freeze(self) -> None:
        """Freeze the state, because all tuples that belong to the snapshot have arrived.

        From now on, new tuples enter a second state, which is empty at first.
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

        The value contains the state in the snapshot, an event time, and the number of late tuples. The bolt has
        dropped all windows that end at or before this event time.
        """
        return [self._monoid.to_value(self.a), self.closed, self.late_in_a]

    def restore(self, value: Any) -> None:
        """Continue with the state of a stored snapshot. `value` is what `to_value` returned for this snapshot."""
        state, self.closed, self.late_in_a = value
        self.a = self._monoid.from_value(state)
