"""A guard for what belongs to one thread at a time, and can be closed."""

import threading
from types import TracebackType


class Guard:
    """Lets one thread in; a second one gets an error at once, for to wait would hide the mistake.

    The same thread may come in again, as a callback does that is called from within. Once it is closed, nobody gets in.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.RLock()  # guards what the owner has; never waited for
        self.is_closed = False

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(f"{self._what} is in use by another thread: give each thread one of its own")
        if self.is_closed:
            self._lock.release()
            raise RuntimeError(f"{self._what} is closed")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
