"""Records the order in which the threads of a broker take locks, for tests and drawings.

The function `recorded_order` replaces `threading.Lock` and `threading.Condition`. The locks that `hmb` creates after
this replacement record when a thread takes or releases them. The name of a lock consists of a file and an attribute,
for example ("storage/log.py", "_lock").
"""

from __future__ import annotations

import linecache
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

import hmb
from hmb.broker.fetch_sessions import FetchSessions
from hmb.coordinator.transactions.table import TransactionEntry
from hmb.storage.files import virtual

HMB = Path(hmb.__file__).parent
LOCK, CONDITION = threading.Lock, threading.Condition
ATTRIBUTE = re.compile(r"\s*(?:self\.)?(\w+)\b.*=")
Name = tuple[str, str]  # a file in hmb/, and the attribute that holds the lock


class LockEvent(NamedTuple):
    """An event: a thread has taken or released a lock."""

    thread: str
    lock: Name
    is_taken: bool


class LockOrder:
    """The locks that threads have taken.

    - `pairs` contains the pair (A, B) if a thread has taken lock B while the thread held lock A.
    - `events` contains an event for each time at which a thread took or released a lock, in the order of time.
    """

    def __init__(self) -> None:
        self.pairs: set[tuple[Name, Name]] = set()
        self.events: list[LockEvent] = []
        self._local = threading.local()

    @property
    def _held(self) -> list[Name]:
        held: list[Name] = self._local.__dict__.setdefault("held", [])
        return held

    def taken(self, name: Name) -> None:
        self.pairs |= {(each, name) for each in self._held}
        self._held.append(name)
        self.events.append(LockEvent(threading.current_thread().name, name, True))

    def released(self, name: Name) -> None:
        self._held.remove(name)
        self.events.append(LockEvent(threading.current_thread().name, name, False))


class RecordedLock:
    """A lock that reports to a LockOrder when a thread takes and releases it."""

    def __init__(self, name: Name, order: LockOrder) -> None:
        self._lock, self._name, self._order = LOCK(), name, order

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        has_lock = self._lock.acquire(blocking, timeout)
        if has_lock:
            self._order.taken(self._name)
        return has_lock

    def release(self) -> None:
        self._order.released(self._name)
        self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()


def _name(frame: FrameType) -> Name | None:
    """Return the name of the lock that the current line of `frame` creates, for example ("storage/log.py", "_lock").

    Return None if the line does not belong to `hmb`, or if it does not assign the lock to an attribute.
    """
    file = Path(frame.f_code.co_filename)
    found = ATTRIBUTE.match(linecache.getline(str(file), frame.f_lineno))
    return (file.relative_to(HMB).as_posix(), found[1]) if found and HMB in file.parents else None


def recorded_order(patch: pytest.MonkeyPatch) -> LockOrder:
    """Record the order in which threads take locks.

    Only locks that the code of `hmb` creates after this call are recorded.
    """
    order = LockOrder()

    def lock() -> Any:
        name = _name(sys._getframe(1))
        return LOCK() if name is None else RecordedLock(name, order)

    def condition(lock: Any = None) -> threading.Condition:
        name = _name(sys._getframe(1))
        return CONDITION(lock if lock is not None or name is None else RecordedLock(name, order))  # type: ignore[arg-type]

    patch.setattr(threading, "Lock", lock)
    patch.setattr(threading, "Condition", condition)
    patch.setattr(virtual, "NAMES_LOCK", RecordedLock(("storage/files/virtual.py", "NAMES_LOCK"), order))
    for cls, field, file in (
        (FetchSessions, "_lock", "broker/fetch_sessions.py"),
        (TransactionEntry, "lock", "coordinator/transactions/table.py"),
    ):
        patch.setattr(cls, "__init__", _with_recorded(cls.__init__, field, (file, field), order))
    return order


def _with_recorded(init: Callable[..., None], field: str, name: Name, order: LockOrder) -> Callable[..., None]:
    """Return a constructor that calls `init`, and then replaces the lock of the new object with a `RecordedLock`.

    The function is for dataclasses with a field such as `lock: Lock = field(default_factory=threading.Lock)`. A
    dataclass of this kind keeps the original `Lock`, even if a test replaces `threading.Lock` later.
    """

    def recorded_init(self: Any, *arguments: Any, **options: Any) -> None:
        init(self, *arguments, **options)
        setattr(self, field, RecordedLock(name, order))
        # `__post_init__` creates a `threading.Condition` that uses the lock. Call this method again, so that the
        # condition uses the recorded lock.
        if hasattr(self, "__post_init__"):
            self.__post_init__()

    return recorded_init
