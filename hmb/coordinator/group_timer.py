"""The timer: one thread that wakes groups at their deadlines.

A heap contains the time at which the timer wakes each group. A heartbeat moves a group's deadline to a later
time, but does not change the heap. At the old deadline, the timer wakes the group, and the group passes its
new deadline to the timer.

Heartbeats do not wake the timer thread. Even for a group with 1,000 heartbeats in one session timeout, the
timer calls the method `wake` only about once.

For example, a group has only one member, which has a session timeout of 45 s and sends a heartbeat every 3 s.
When the timer wakes the group, the last heartbeat was at most 3 s ago. The session therefore has 42 to 45 s
left, and the timer next wakes the group when this time is over.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections.abc import Callable
from typing import Protocol

from hmb.defaults import LONGEST_WAIT
from hmb.storage.clock import monotonic_ms

LOGGER = logging.getLogger(__name__)


class TimedGroup(Protocol):
    """A group that the timer wakes at the time `due` (ms). Only the timer changes `due`."""

    due: int | None

    def wake(self) -> None: ...


class GroupTimer:
    """A thread that wakes each group at its deadline, one group at a time. Thread-safe.

    The timer wakes a group at the group's time `due` (ms). If `due` is not None, the heap contains an entry with
    this time. The timer ignores all other entries of the group.

    For example, `due` changes from 500 to 300. The heap gets an entry with 300, and keeps the entry with 500. The
    thread later ignores the entry with 500, because `due` is no longer 500.
    """

    def __init__(self, clock: Callable[[], int] = monotonic_ms) -> None:
        self._clock = clock
        self._changed = threading.Condition()  # guards all fields; a thread that holds it takes no other lock
        self._heap: list[tuple[int, int, TimedGroup]] = []
        self._numbers = itertools.count()  # numbers for heap entries; the heap sorts equal deadlines by number
        self._is_waking = False  # whether the thread is waking a group
        self._stopped = False
        self.thread = threading.Thread(target=self._run, name="group-timer", daemon=True)

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def schedule(self, group: TimedGroup, deadline: int | None) -> None:
        """Make sure that the timer wakes the group at `deadline` (ms) or earlier. If `deadline` is None, do nothing.

        If the timer would already wake the group before `deadline`, the method changes nothing. When the timer has
        woken the group, the group calls this method again with its current deadline.
        """
        due = group.due  # None if the timer is waking the group; the group then schedules itself again.
        if deadline is None or (due is not None and due <= deadline):
            return
        with self._changed:
            group.due = deadline
            heapq.heappush(self._heap, (deadline, next(self._numbers), group))
            if self._heap[0][2] is group:
                self._changed.notify_all()

    def next_deadline(self) -> int | None:
        """Return the time (ms) at which the timer wakes the next group, or None if it has no group to wake."""
        with self._changed:
            return self._heap[0][0] if self._heap else None

    def wait_until_idle(self) -> None:
        """Wait until the timer has woken all groups that are due.

        Tests use a manual clock (`hmb.testing`). Each time a test moves this clock forward, the clock calls this
        method. The wait always ends, because a group's method `wake` never waits forever. The method `stop` also ends
        the wait.
        """
        with self._changed:
            self._changed.notify_all()
            while not self._stopped and (self._is_waking or self._has_due()):
                self._changed.wait(LONGEST_WAIT)

    def _has_due(self) -> bool:
        return bool(self._heap) and self._heap[0][0] <= self._clock()

    def _run(self) -> None:
        while (group := self._next()) is not None:
            try:
                group.wake()
            except Exception:  # An error in one group must not stop the others.
                LOGGER.exception("the deadlines of a group could not be checked")

    def _next(self) -> TimedGroup | None:
        """Wait until the timer must wake a group, and return this group. Return None after `stop`."""
        with self._changed:
            self._is_waking = False
            self._changed.notify_all()
            while not self._stopped:
                now = self._clock()
                if not self._heap:
                    self._changed.wait(LONGEST_WAIT)  # `schedule` and `stop` wake this thread earlier
                elif self._heap[0][0] > now:
                    self._changed.wait(min((self._heap[0][0] - now) / 1000, LONGEST_WAIT))
                else:
                    due, _, group = heapq.heappop(self._heap)
                    if group.due == due:  # If the two times differ, the timer ignores this old heap entry.
                        group.due, self._is_waking = None, True
                        return group
            return None
