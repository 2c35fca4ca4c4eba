"""The memory of all requests that are being read or handled at the same time: `queued.max.request.bytes`.

A request may have 100 MB, and a broker serves thousands of connections. So all requests share one budget. Each
request has an account, and pays into it before it takes memory:

    the bytes of its frame        as they arrive, if the frame does not fit into the connection's read buffer
    the values that it decodes    before they are allocated (protocol/allowance.py), above a small free part

While the budget is used up, a connection that needs more of it waits. The broker does not read from it in that time,
so its client waits, too. When a request is handled, its account is closed, and its memory is free for the next one.

Requests that each hold a part and wait for the rest could wait for each other forever. Therefore one request at a time
may overdraw the budget. It ends in a known time, because a client that stops sending is cut off, and it passes this
right to the next request when it ends. So the limit holds but for one request: with 16 MB, and with 100 MB for the
largest request, the memory of all requests stays below 116 MB.

Large requests do not use the last part of the budget. A producer's usual request, of at most 1 MB, is not kept waiting
by other clients' slow uploads of 100 MB.

A request that waits by its nature, a long poll, keeps its memory only as long as nobody else needs it (`watchers`).

Kafka has the same setting, without a limit by default; its pool counts frames only.
"""

from __future__ import annotations

import threading

from hmb.broker.errors import CloseConnection
from hmb.protocol.errors import ProtocolError
from hmb.storage.config import MIB
from hmb.storage.watchers import Watchers

USUAL_REQUEST = MIB  # the largest request of a producer by default (max.request.size)
KEPT_FOR_USUAL = 8 * MIB  # the part of the budget that larger requests leave alone
MOST_VALUES = 20 * MIB  # bytes that one request may decode: some 20,000 items, which take up to half a second
FREE_VALUES = 64 * 1024  # bytes, of each request: most requests never look at the budget
LONGEST_WAIT = 60.0  # seconds


class RequestMemory:
    """The budget."""

    def __init__(self, limit: int) -> None:
        """`limit` is in bytes; none or a negative one means that there is no limit."""
        self._limit = limit
        self._changed = threading.Condition()  # guards all below; the lock of `watchers` is taken under it
        self._used = 0
        self._overdrawn: Account | None = None  # the account that may use more than the limit
        self._waiting = 0
        self._stopped = False
        self.watchers = Watchers()  # of requests that give their memory up as soon as somebody waits for it

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
        """Let nobody wait any longer."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def take(self, account: Account, size: int) -> None:
        """Wait until an account may have so much more memory. Raises CloseConnection if that takes too long."""
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
        """Take the memory of an account back."""
        with self._changed:
            self._used -= size
            if self._overdrawn is account:
                self._overdrawn = None
            if self._waiting:
                self._changed.notify_all()


class Account:
    """The memory of one request. Only the thread that serves the request uses it."""

    __slots__ = ("_held", "_memory", "_values", "frame_size")

    def __init__(self, memory: RequestMemory | None, frame_size: int) -> None:
        """Without `memory`, the request may take what it needs."""
        self._memory = memory
        self.frame_size = frame_size  # bytes
        self._held = 0
        self._values = 0

    @property
    def is_wanted(self) -> bool:
        """Whether another request waits for memory, while this one holds some."""
        return self._held > 0 and self._memory is not None and self._memory.is_wanted

    @property
    def watchers(self) -> Watchers | None:
        """The watchers that are woken when another request waits for memory; None if this request holds none."""
        return self._memory.watchers if self._memory is not None and self._held else None

    def take(self, size: int) -> None:
        """Take memory for `size` bytes of the frame. Raises CloseConnection."""
        if self._memory is not None:
            self._memory.take(self, size)
            self._held += size

    def take_values(self, size: int) -> None:
        """Take memory for values that are decoded. Raises ProtocolError if they are too many, CloseConnection."""
        if self._memory is None:
            return
        self._values += size
        if self._values > MOST_VALUES:
            raise ProtocolError(f"its values take more than {MOST_VALUES} bytes of memory")
        if self._values > FREE_VALUES:
            self.take(size)

    def close(self) -> None:
        """Give all memory back: the request is handled, or what it left is accounted for elsewhere."""
        if self._memory is not None and self._held:
            self._memory.give_back(self, self._held)
        self._held = 0


UNCOUNTED = Account(None, 0)  # of all requests that are too small to count
