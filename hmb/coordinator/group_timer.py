"""The timer: one thread that wakes groups at their deadlines.

A heap contains the next wake-up of each group. A heartbeat moves the deadline of a group, and the heap stays unchanged.
The group then wakes up too early, finds nothing to do, and schedules its next wake-up. A group therefore costs one
wake-up in each session timeout, however many members send heartbeats.

For example, a member with a session timeout of 45 s sends a heartbeat every 3 s. The group wakes up once every 42 s.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections.abc import Callable
from typing import Protocol

from hmb.storage.clock import monotonic_ms

LOGGER = logging.getLogger(__name__)


class Sleeper(Protocol):
    """An object that the timer wakes. `due` is the time (ms) of the wake-up, and only the timer changes it."""

    due: int | None

    def wake(self) -> None: ...


class GroupTimer:
    """A timer that wakes sleepers one after the other."""

    def __init__(self, clock: Callable[[], int] = monotonic_ms) -> None:
        self._clock = clock
        self._changed = threading.Condition()  # guards the heap, every `due` and `_stopped`; its holder takes no lock
        self._heap: list[tuple[int, int, Sleeper]] = []
        self._numbers = itertools.count()  # orders sleepers with the same deadline
        self._is_waking = False  # whether the thread is waking a sleeper
        self._stopped = False
        self.thread = threading.Thread(target=self._run, name="group-timer", daemon=True)

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def schedule(self, sleeper: Sleeper, deadline: int | None) -> None:
        """Wake the sleeper at `deadline` (ms) or earlier. None schedules nothing."""
        due = sleeper.due  # A sleeper that is being woken schedules itself again.
        if deadline is None or (due is not None and due <= deadline):
            return
        with self._changed:
            sleeper.due = deadline
            heapq.heappush(self._heap, (deadline, next(self._numbers), sleeper))
            if self._heap[0][2] is sleeper:
                self._changed.notify_all()

    def next_deadline(self) -> int | None:
        """Return the time (ms) of the next wake-up, or None if no wake-up is scheduled."""
        with self._changed:
            return self._heap[0][0] if self._heap else None

    def settle(self) -> None:
        """Return when every sleeper that is due now has been woken. A test that moves the clock calls this method."""
        with self._changed:
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._stopped or not (self._is_waking or self._has_due()))

    def _has_due(self) -> bool:
        return bool(self._heap) and self._heap[0][0] <= self._clock()

    def _run(self) -> None:
        while (sleeper := self._next()) is not None:
            try:
                sleeper.wake()
            except Exception:  # An error in one group must not stop the others.
                LOGGER.exception("the deadlines of a group could not be checked")

    def _next(self) -> Sleeper | None:
        """Wait for the next sleeper and return it, or None after `stop`."""
        with self._changed:
            self._is_waking = False
            self._changed.notify_all()
            while not self._stopped:
                now = self._clock()
                if not self._heap:
                    self._changed.wait()
                elif self._heap[0][0] > now:
                    self._changed.wait(min((self._heap[0][0] - now) / 1000, threading.TIMEOUT_MAX))
                else:
                    due, _, sleeper = heapq.heappop(self._heap)
                    if sleeper.due == due:  # A sleeper with another `due` has been scheduled again.
                        sleeper.due, self._is_waking = None, True
                        return sleeper
            return None
