"""A guard for what belongs to one thread at a time."""

import threading
from types import TracebackType


class OneThread:
    """Lets one thread in; a second one gets an error at once, for to wait would hide the mistake.

    The same thread may come in again, as a callback does that is called from within.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.RLock()  # guards what the owner has; never waited for

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(f"{self._what} is in use by another thread: give each thread one of its own")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
