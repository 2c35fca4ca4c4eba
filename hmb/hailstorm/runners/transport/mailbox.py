"""A mailbox is the queue of one processor. It contains payloads and notices.

*Payloads* contain the tuples that other processors send to the mailbox's processor. The mailbox holds at most
CAPACITY (16) `Payloads` objects. The processor takes the objects in the order of their arrival.

*Notices* are messages that control the processor. There are two kinds. A *master state* is a command to all
processors, for example to begin a snapshot. A `SaveNotice` reports that a save of the processor's state has
ended. The processor takes notices before payloads, so a command never waits for the payloads in the mailbox.

A mailbox needs no limit for notices, because only a few can wait in it. A new master state replaces an older
one in the mailbox. Each save causes one `SaveNotice`, and a processor has at most one save in progress, unless
the topology restarts during a save.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from hmb.hailstorm.clock import Clock
from hmb.hailstorm.master import MasterState
from hmb.hailstorm.payload import Payloads
from hmb.hailstorm.processors.participant import Machine

CAPACITY = 16  # the largest number of `Payloads` in a mailbox; each of them contains tuples of one batch of a spout
CHECK_INTERVAL = 0.05  # seconds after which a waiting sender checks again whether its epoch has ended


class SaveNotice(NamedTuple):
    """Reports to a processor whether its state was saved. If saving failed, `error` contains the reason."""

    machine: Machine
    clock: Clock
    error: Exception | None


Notice = MasterState | SaveNotice


class Mailbox:
    """The mailbox of one processor. Any thread may add payloads and notices; only the processor's thread takes them."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.newest_epoch = 0  # the highest epoch among the master states that have arrived
        self._capacity = capacity
        self._notices: deque[Notice] = deque()  # at most one master state, and one notice for each save in progress
        self._payloads: deque[Payloads] = deque()
        self._is_closed = False
        self._lock = threading.Lock()  # guards all fields
        self._filled = threading.Condition(self._lock)
        self._emptied = threading.Condition(self._lock)

    def __len__(self) -> int:
        return len(self._payloads)

    def put(self, payloads: Payloads, is_obsolete: Callable[[], bool] = lambda: False) -> bool:
        """Add payloads, and return True. While the mailbox is full, wait.

        Return False if the mailbox is closed, or if the payloads are obsolete before the mailbox has room.
        """
        with self._lock:
            while len(self._payloads) >= self._capacity and not self._is_closed:
                if is_obsolete() or payloads.epoch < self.newest_epoch:
                    return False
                self._emptied.wait(CHECK_INTERVAL)
            if self._is_closed:
                return False
            self._payloads.append(payloads)
            self._filled.notify()
            return True

    def notify(self, notice: Notice) -> None:
        """Add a master state or a `SaveNotice` without waiting.

        A master state is a command of the negotiator. A processor needs only the newest command, so a new master state
        replaces an older one in the mailbox.
        """
        with self._lock:
            if isinstance(notice, MasterState):
                self.newest_epoch = max(self.newest_epoch, notice.epoch)
                self._notices = deque(each for each in self._notices if isinstance(each, SaveNotice))
            self._notices.append(notice)
            self._filled.notify()

    def take(self, timeout: float) -> Notice | Payloads | None:
        """Return the next notice, or the next payloads if the mailbox has no notice.

        Return None if nothing arrives within `timeout` seconds, or if the mailbox is closed and empty.
        """
        deadline = time.monotonic() + timeout
        with self._lock:
            while not self._notices and not self._payloads:
                left = deadline - time.monotonic()
                if left <= 0 or self._is_closed:
                    return None
                self._filled.wait(left)
            if self._notices:
                return self._notices.popleft()
            payloads = self._payloads.popleft()
            self._emptied.notify_all()
            return payloads

    def close(self) -> None:
        """Drop the payloads in the mailbox, refuse all later payloads, and wake the senders that wait."""
        with self._lock:
            self._is_closed = True
            self._payloads.clear()
            self._filled.notify_all()
            self._emptied.notify_all()
