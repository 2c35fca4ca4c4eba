"""One thread that lets time pass for all groups.

A heap holds, for each group, when it wants to be woken at the latest. Heartbeats move a group's deadlines on all the
time, which changes nothing here: the group is woken too early, finds nothing to do, and says when it wants to be woken
next. So a group costs one wake-up in some session timeout, however many members send heartbeats.
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
    """The time of a clock that never jumps."""
    return time.monotonic_ns() // 1_000_000


class Sleeper(Protocol):
    """Who is woken; `due` is when (ms), and belongs to the timer."""

    due: int | None

    def wake(self) -> None: ...


class GroupTimer:
    """Wakes each sleeper at its time, one after the other."""

    def __init__(self, clock: Callable[[], int] = monotonic_ms) -> None:
        self._clock = clock
        self._changed = threading.Condition()  # guards the heap, every `due` and `_stopped`; no lock is taken under it
        self._heap: list[tuple[int, int, Sleeper]] = []
        self._numbers = itertools.count()  # sleepers of the same time go by these
        self._stopped = False
        self.thread = threading.Thread(target=self._run, name="group-timer", daemon=True)

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def schedule(self, sleeper: Sleeper, deadline: int | None) -> None:
        """Wake it at `deadline`, or before. None: it has no wish."""
        due = sleeper.due  # if it is being woken just now, it will say anew when it wants to be woken next
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
            except Exception:  # the other groups' time goes on
                LOGGER.exception("a group's time limits could not be seen to")

    def _next(self) -> Sleeper | None:
        """Wait for the next one to wake; None: stopped."""
        with self._changed:
            while not self._stopped:
                now = self._clock()
                if not self._heap:
                    self._changed.wait()
                elif self._heap[0][0] > now:
                    self._changed.wait(min((self._heap[0][0] - now) / 1000, threading.TIMEOUT_MAX))
                else:
                    due, _, sleeper = heapq.heappop(self._heap)
                    if sleeper.due == due:  # else it has asked for an earlier time since, and was woken then
                        sleeper.due = None
                        return sleeper
            return None
