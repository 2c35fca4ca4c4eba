"""Limits how fast the cleaner reads and writes, so that compaction does not slow down the requests of clients."""

from __future__ import annotations

import threading
import time

from hmb.storage.failure_isolation import Stopped

STINT, REST = 0.005, 0.000_1  # seconds: the compacting thread works for STINT, then sleeps for REST


class Throttle:
    """Limits compaction to `rate` bytes per second on average.

    The throttle also makes the compacting thread sleep for 0.1 ms after each 5 ms of work. Without this pause, the
    thread would hold the interpreter's lock most of the time, and the threads that serve clients would wait.
    """

    def __init__(self, rate: float, stop: threading.Event) -> None:
        self._rate = rate
        self._stop = stop
        self._started, self._spent = time.monotonic(), 0
        self._rested = self._started

    def spend(self, size: int) -> None:
        """Count `size` more bytes, and wait while the average speed exceeds the rate.

        Raises Stopped if the broker stops.
        """
        self._spent += size
        now = time.monotonic()
        ahead = self._spent / self._rate - (now - self._started)
        if self._stop.is_set() or (ahead > 0 and self._stop.wait(ahead)):
            raise Stopped
        if now - self._rested > STINT:
            time.sleep(REST)
            self._rested = time.monotonic()
