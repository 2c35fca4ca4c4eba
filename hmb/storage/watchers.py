"""Waiting for one of several events: a fetch waits for an append to any of its logs, or for the broker's stop.

Each log has a set of watchers, and a watcher may be in the sets of several logs. A reader first adds its watcher, then
reads, then waits. With another order it could miss an append between its read and its wait.
"""

from __future__ import annotations

import threading


class Watcher:
    """A thread that waits."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def wake(self) -> None:
        self._event.set()

    def wait(self, seconds: float) -> None:
        """Return at the first wake-up since the last wait, or after `seconds`."""
        self._event.wait(seconds)
        self._event.clear()


class Watchers:
    """The watchers of one log."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the set; held for a moment only, no other lock is taken under it
        self._watchers: set[Watcher] = set()

    def add(self, watcher: Watcher) -> None:
        with self._lock:
            self._watchers.add(watcher)

    def discard(self, watcher: Watcher) -> None:
        with self._lock:
            self._watchers.discard(watcher)

    def wake_all(self) -> None:
        if self._watchers:  # mostly nobody waits, and this is on the way of every produce
            with self._lock:
                for watcher in self._watchers:
                    watcher.wake()
