"""Lets a fetch wait until a producer appends records to one of its logs, or until the broker stops.

A watcher stands for one waiting fetch. Each log has a set of watchers, and an append to the log wakes all of
them.

A fetch first reads its logs. If it must wait for more records, it adds its watcher to the set of each log. It
then reads the logs again, and only then waits. Without the second read, it would miss records that were
appended after the first read, but before the watcher was in the set.
"""

from __future__ import annotations

import threading


class Watcher:
    """A thread that waits until another thread wakes it, for example after an append."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def wake(self) -> None:
        self._event.set()

    def wait(self, seconds: float) -> None:
        """Wait until another thread calls `wake`, or until `seconds` seconds have passed.

        A call of `wake` is not lost if no thread is waiting: the next `wait` then returns at once.
        """
        self._event.wait(seconds)
        self._event.clear()


class Watchers:
    """The threads that wait for an append to one log."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the set of watchers; a thread that holds this lock takes no other lock
        self._watchers: set[Watcher] = set()

    def add(self, watcher: Watcher) -> None:
        with self._lock:
            self._watchers.add(watcher)

    def discard(self, watcher: Watcher) -> None:
        with self._lock:
            self._watchers.discard(watcher)

    def wake_all(self) -> None:
        # Usually no fetch waits, so most appends do not take the lock. An append writes its records before it checks
        # `_watchers`. A fetch adds its watcher, and then reads the log again before it waits. So no fetch misses the
        # records.
        if self._watchers:
            with self._lock:
                for watcher in self._watchers:
                    watcher.wake()
