"""The memory of all requests that are being read or handled at the same time: `queued.max.request.bytes`.

A request may have 100 MB, and a broker serves thousands of connections. So all requests share one budget of memory.
Each request has an account, which takes these bytes from the budget:

    the bytes of its frame        as they arrive, if the frame does not fit into the connection's read buffer
    the values that it decodes    before they are allocated (protocol/allowance.py), above a small free part

If the budget is used up, a connection that needs more memory waits. During this wait the broker does not read from the
connection, so its client waits, too. After the request was handled, the broker returns the request's bytes to the
budget.

Several requests that each hold a part of the budget could wait for each other forever. Therefore one request at a time
may overdraw the budget. This request ends in a known time, because the broker disconnects a client that stops sending.
Then another request may overdraw the budget. With a budget of 16 MB and a largest request of 100 MB, all requests
together take at most 116 MB.

Large requests do not use the last part of the budget. A producer's usual request, of at most 1 MB, is not kept waiting
by other clients' slow uploads of 100 MB.

A long poll keeps its memory only as long as no other request needs it. Then its watcher wakes it, and it ends early
(`watchers`).

Kafka has the same setting, without a limit by default; its pool counts frames only.
"""

from __future__ import annotations

import threading

from hmb.broker.errors import CloseConnection
from hmb.protocol.errors import ProtocolError
from hmb.storage.config import MIB
from hmb.storage.watchers import Watchers

USUAL_REQUEST = MIB  # the largest request of a producer by default (max.request.size)
KEPT_FOR_USUAL = 8 * MIB  # the part of the budget that larger requests cannot use
MOST_VALUES = 16 * MIB  # bytes that one request may decode: some 16,000 items, which take up to 0.8 s
FREE_VALUES = 64 * 1024  # bytes of each request that need no budget, so most requests never use it
LONGEST_WAIT = 60.0  # seconds that a request waits for memory


class RequestMemory:
    """The budget of memory that all requests share."""

    def __init__(self, limit: int) -> None:
        """Create a budget of `limit` bytes. 0 or a negative number means no limit."""
        self._limit = limit
        self._changed = threading.Condition()  # guards the fields below; taken before the lock of `watchers`
        self._used = 0
        self._overdrawn: Account | None = None  # the account that may use more than the limit
        self._waiting = 0
        self._stopped = False
        self.watchers = Watchers()  # long polls, which end when another request waits for memory

    @property
    def used(self) -> int:
        """The bytes that all accounts hold."""
        return self._used

    @property
    def is_wanted(self) -> bool:
        """Whether a request waits for memory."""
        return self._waiting > 0

    def open(self, size: int) -> Account:
        """Open the account of a request whose frame has `size` bytes."""
        return Account(self, size)

    def stop(self) -> None:
        """End all waits for memory, now and later."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def take(self, account: Account, size: int) -> None:
        """Wait until an account may take `size` more bytes. Raises CloseConnection after LONGEST_WAIT seconds."""
        with self._changed:
            if not self._fits(account, size):
                self._wait_for_room(account, size)
            self._used += size

    def _wait_for_room(self, account: Account, size: int) -> None:
        self._waiting += 1
        self.watchers.wake_all()
        try:
            has_room = self._changed.wait_for(lambda: self._stopped or self._fits(account, size), LONGEST_WAIT)
        finally:
            self._waiting -= 1
        if self._stopped or not has_room:
            reason = "the broker stops" if self._stopped else f"no memory for its request in {LONGEST_WAIT:g} s"
            raise CloseConnection(reason)

    def _fits(self, account: Account, size: int) -> bool:
        limit = self._limit - (KEPT_FOR_USUAL if account.frame_size > USUAL_REQUEST else 0)
        if self._limit <= 0 or self._used + size <= limit:
            return True
        if self._overdrawn in (None, account):
            self._overdrawn = account
            return True
        return False

    def give_back(self, account: Account, size: int) -> None:
        """Return `size` bytes of an account to the budget."""
        with self._changed:
            self._used -= size
            if self._overdrawn is account:
                self._overdrawn = None
            if self._waiting:
                self._changed.notify_all()


class Account:
    """The account of one request, with the bytes of memory that it holds. Only the request's thread uses it."""

    __slots__ = ("_held", "_memory", "_values", "frame_size")

    def __init__(self, memory: RequestMemory | None, frame_size: int) -> None:
        """Open an account of the budget `memory`. Without a budget, the request may take any number of bytes."""
        self._memory = memory
        self.frame_size = frame_size  # bytes
        self._held = 0
        self._values = 0

    @property
    def is_wanted(self) -> bool:
        """Whether another request waits for memory while this request holds some."""
        return self._held > 0 and self._memory is not None and self._memory.is_wanted

    @property
    def watchers(self) -> Watchers | None:
        """The watchers to wake when another request waits for memory, or None if this request holds no memory."""
        return self._memory.watchers if self._memory is not None and self._held else None

    def take(self, size: int) -> None:
        """Take memory for `size` bytes of the frame. Raises CloseConnection."""
        if self._memory is not None:
            self._memory.take(self, size)
            self._held += size

    def take_values(self, size: int) -> None:
        """Take memory for decoded values. Raises ProtocolError above MOST_VALUES bytes, CloseConnection."""
        if self._memory is None:
            return
        self._values += size
        if self._values > MOST_VALUES:
            raise ProtocolError(f"its values take more than {MOST_VALUES} bytes of memory")
        if self._values > FREE_VALUES:
            self.take(size)

    def close(self) -> None:
        """Return all memory of this request to the budget."""
        if self._memory is not None and self._held:
            self._memory.give_back(self, self._held)
        self._held = 0


UNCOUNTED = Account(None, 0)  # the account of all requests that are too small to count
