"""Waiting for one of several events: a fetch waits for an append to any of its logs, or for the broker's stop.

Each log has a set of watchers, and a watcher may be in the sets of several logs. A reader first adds its watcher, then
reads, then waits. With another order it could miss an append between its read and its wait.
"""

from __future__ import annotations

import threading


class Watcher:
    """A thread that waits for new records."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def wake(self) -> None:
        self._event.set()

    def wait(self, seconds: float) -> None:
        """Return at the first wake-up since the last wait, or after `seconds`."""
        self._event.wait(seconds)
        self._event.clear()


class Watchers:
    """The threads that wait for an append to one log."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the set; a thread that holds this lock takes no other lock
        self._watchers: set[Watcher] = set()

    def add(self, watcher: Watcher) -> None:
        with self._lock:
            self._watchers.add(watcher)

    def discard(self, watcher: Watcher) -> None:
        with self._lock:
            self._watchers.discard(watcher)

    def wake_all(self) -> None:
        if self._watchers:  # Usually nobody waits. Then a produce does not take the lock.
            with self._lock:
                for watcher in self._watchers:
                    watcher.wake()
