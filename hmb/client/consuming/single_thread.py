"""Detects that two threads use an object at the same time, and raises an error."""

from __future__ import annotations

import threading
from types import TracebackType


class SingleThreadCheck:
    """A context manager for the methods of an object that only one thread may use at a time.

    While one thread runs a method of the object, each call by a second thread raises an error immediately. The second
    thread does not wait, because waiting would hide the mistake. The first thread may call another method, for example
    in a callback. After `is_closed` is set, each call raises an error.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.RLock()  # A thread that does not get this lock raises an error instead of waiting.
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
