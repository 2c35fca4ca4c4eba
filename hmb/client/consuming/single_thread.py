"""A check that only one thread at a time uses an object."""

from __future__ import annotations

import threading
from types import TracebackType


class SingleThreadCheck:
    """A context manager for the methods of an object that belongs to one thread at a time.

    A second thread gets an error at once, because waiting would hide the mistake. The thread that uses the object may
    enter again, for example in a callback. After `is_closed` is set, every use raises an error.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.RLock()  # No thread ever waits for this lock.
        self.is_closed = False

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(f"{self._name} is in use by another thread: give each thread one of its own")
        if self.is_closed:
            self._lock.release()
            raise RuntimeError(f"{self._name} is closed")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
