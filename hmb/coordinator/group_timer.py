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
import time
from collections.abc import Callable
from typing import Protocol

LOGGER = logging.getLogger(__name__)


def monotonic_ms() -> int:
    """Return the time (ms) of a clock that never jumps."""
    return time.monotonic_ns() // 1_000_000


class Sleeper(Protocol):
    """An object that the timer wakes. `due` is the time (ms) of the wake-up, and only the timer changes it."""

    due: int | None

    def wake(self) -> None: ...


class GroupTimer:
    """A timer that wakes sleepers one after the other."""

    def __init__(self, clock: Callable[[], int] = monotonic_ms) -> None:
        self._clock = clock
        self._changed = threading.Condition()  # guards the heap, every `due` and `_stopped`; no lock is taken under it
        self._heap: list[tuple[int, int, Sleeper]] = []
        self._numbers = itertools.count()  # orders sleepers with the same deadline
        self._stopped = False
        self.thread = threading.Thread(target=self._run, name="group-timer", daemon=True)

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def schedule(self, sleeper: Sleeper, deadline: int | None) -> None:
        """Wake the sleeper at `deadline` (ms) or earlier. None schedules nothing."""
        due = sleeper.due  # A sleeper that is being woken schedules itself again.
        if deadline is None or (due is not None and due <= deadline):
            return
        with self._changed:
            sleeper.due = deadline
            heapq.heappush(self._heap, (deadline, next(self._numbers), sleeper))
            if self._heap[0][2] is sleeper:
                self._changed.notify()

    def _run(self) -> None:
        while (sleeper := self._next()) is not None:
            try:
                sleeper.wake()
            except Exception:  # An error in one group must not stop the others.
                LOGGER.exception("the deadlines of a group could not be checked")

    def _next(self) -> Sleeper | None:
        """Wait for the next sleeper and return it, or None after `stop`."""
        with self._changed:
            while not self._stopped:
                now = self._clock()
                if not self._heap:
                    self._changed.wait()
                elif self._heap[0][0] > now:
                    self._changed.wait(min((self._heap[0][0] - now) / 1000, threading.TIMEOUT_MAX))
                else:
                    due, _, sleeper = heapq.heappop(self._heap)
                    if sleeper.due == due:  # Otherwise an earlier wake-up has replaced this one.
                        sleeper.due = None
                        return sleeper
            return None
