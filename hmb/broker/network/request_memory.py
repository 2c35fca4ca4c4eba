"""A limit for the memory of all requests that the broker reads and handles at one time (`queued.max.request.bytes`).

One request can have 100 MB, and a broker can have thousands of connections. Therefore all requests share one budget of
memory.

Each request has an `Account`, which counts the bytes that the request takes from the memory budget. A request
takes bytes for two things:
- The request's frame. If the frame is larger than the connection's read buffer, the account takes the frame's
  bytes while they arrive. A smaller frame takes nothing from the budget.
- The decoded values of the request. The account takes the bytes of a value before the decoder creates the
  value (protocol/allowance.py). The first 64 KiB of values take nothing from the budget.

If the memory budget of the broker has too few free bytes for a request, the thread that reads this request waits.
Meanwhile this thread does not read from its connection, so the client also has to wait. When the broker has handled a
request, the bytes of this request become free again.

Suppose that two large requests have each taken half of the memory budget, and both need more. They would block each
other. The broker therefore allows one request at a time to exceed the budget. This request does not wait for memory,
and it ends in limited time, because the broker disconnects a client that stops sending. Then another request can
exceed the budget.

For example, many requests have taken the whole budget of 16 MB. Only one further request may exceed the budget.
If it takes 100 MB, all requests together take 116 MB.

The last 8 MiB of the memory budget are reserved for requests of at most 1 MiB. By default, a producer sends no
larger requests (`max.request.size`). If larger requests take all other memory, producers can usually still use
the reserved part. Only one larger request at a time may also take memory from the reserved part.

A long poll is a Fetch request that waits for new records. A waiting request keeps its memory. If another request needs
memory, the broker wakes all long polls, and answers them early. Their memory then becomes free.

The setting `queued.max.request.bytes` comes from Kafka. Its default in Kafka is no limit. Kafka counts only the bytes
of frames, but HMB counts the bytes of frames and of decoded values.
"""

from __future__ import annotations

import threading

from hmb.broker.errors import CloseConnection
from hmb.protocol.errors import ProtocolError
from hmb.storage.watchers import Watchers
from hmb.units import MIB

USUAL_REQUEST = MIB  # in bytes; by default, a producer sends no larger requests (max.request.size)
KEPT_FOR_USUAL = 8 * MIB  # this part of the budget, in bytes, is reserved for requests of at most USUAL_REQUEST bytes
# The decoded values of one request take at most this number of bytes. An array item counts as 1,024 bytes, so a request
# can contain about 16,000 items. Decoding these items takes at most 0.8 s.
MAX_VALUES = 16 * MIB
FREE_VALUES = 64 * 1024  # the budget does not count the first FREE_VALUES bytes of a request's decoded values
MEMORY_TIMEOUT = 60.0  # a request waits at most this number of seconds for free memory


class RequestMemory:
    """The budget of memory that all requests of a broker share. Thread-safe.

    Each request has an `Account`, which counts the bytes that the request has taken from the budget.

    - `_used` is the number of bytes that all requests together have taken.
    - `_overdrawn` is the account of a request that has taken more bytes than were free, or None. Only one request
      at a time may do this, and `_used` can then exceed the budget.
    """

    def __init__(self, limit: int) -> None:
        """Create a budget of `limit` bytes. If `limit` is 0 or negative, the budget is unlimited."""
        self._limit = limit
        # The lock of `_changed` guards the fields from `_used` to `_stopped`. A thread that needs this lock and the
        # lock of `watchers` takes the lock of `_changed` first.
        self._changed = threading.Condition()
        self._used = 0
        self._overdrawn: Account | None = None  # the one account that has made `_used` greater than the limit
        self._waiting = 0
        self._stopped = False
        self.watchers = Watchers()  # the waiting Fetch requests, which end when another request waits for memory

    @property
    def used(self) -> int:
        """The number of bytes that all requests together have taken from the budget."""
        return self._used

    @property
    def is_wanted(self) -> bool:
        """Whether at least one request waits for memory."""
        return self._waiting > 0

    def open(self, size: int) -> Account:
        """Return a counter for the memory of a request with `size` bytes."""
        return Account(self, size)

    def stop(self) -> None:
        """Wake all threads that wait for memory. From now on, each wait fails with CloseConnection."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def take(self, account: Account, size: int) -> None:
        """Take `size` bytes from the memory budget for the request of `account`.

        If too few bytes are free, wait, unless this request may exceed the budget. Raises CloseConnection if the wait
        takes more than MEMORY_TIMEOUT seconds, or if the broker stops meanwhile.
        """
        with self._changed:
            if not self._fits(account, size):
                self._wait_for_room(account, size)
            self._used += size

    def _wait_for_room(self, account: Account, size: int) -> None:
        self._waiting += 1
        self.watchers.wake_all()
        try:
            has_room = self._changed.wait_for(lambda: self._stopped or self._fits(account, size), MEMORY_TIMEOUT)
        finally:
            self._waiting -= 1
        if self._stopped or not has_room:
            reason = "the broker is stopping" if self._stopped else f"no memory for the request in {MEMORY_TIMEOUT:g} s"
            raise CloseConnection(reason)

    def _fits(self, account: Account, size: int) -> bool:
        limit = self._limit - (KEPT_FOR_USUAL if account.frame_size > USUAL_REQUEST else 0)
        if self._limit <= 0 or self._used + size <= limit:
            return True
        if self._overdrawn in (None, account):
            self._overdrawn = account
            return True
        return False

    def release(self, account: Account, size: int) -> None:
        """Release `size` bytes of memory that the request of `account` has taken."""
        with self._changed:
            self._used -= size
            if self._overdrawn is account:
                self._overdrawn = None
            if self._waiting:
                self._changed.notify_all()


class Account:
    """Counts the bytes that one request has taken from the memory budget.

    Only the request's thread uses the account.
    """

    __slots__ = ("_held", "_memory", "_values", "frame_size")

    def __init__(self, memory: RequestMemory | None, frame_size: int) -> None:
        """Create an account for one request, whose frame has `frame_size` bytes. The account begins with 0 bytes.

        If `memory`, the memory budget of the broker, is None, the account does not count any bytes.
        """
        self._memory = memory
        self.frame_size = frame_size  # in bytes
        self._held = 0
        self._values = 0

    @property
    def is_wanted(self) -> bool:
        """Whether this request has taken memory from the broker's budget and another request waits for memory."""
        return self._held > 0 and self._memory is not None and self._memory.is_wanted

    @property
    def watchers(self) -> Watchers | None:
        """An object that wakes waiting Fetch requests when another request needs memory.

        A Fetch request keeps its memory while it waits for records. Its thread registers in this object. When another
        request needs memory, the broker wakes all registered threads. Each thread then ends its Fetch request early,
        and the memory becomes free.

        The value is None if the request of this `Account` has taken no memory.
        """
        return self._memory.watchers if self._memory is not None and self._held else None

    def take(self, size: int) -> None:
        """Take `size` bytes from the budget. If too few bytes are free, wait. Raises CloseConnection."""
        if self._memory is not None:
            self._memory.take(self, size)
            self._held += size

    def take_values(self, size: int) -> None:
        """Take `size` bytes from the memory budget for decoded values of this request.

        While all values so far take at most FREE_VALUES bytes together, take nothing from the budget. If the budget has
        too few free bytes, wait.

        Raises ProtocolError if all values so far take more than MAX_VALUES bytes. Raises CloseConnection if the wait
        takes too long or the broker stops.
        """
        if self._memory is None:
            return
        self._values += size
        if self._values > MAX_VALUES:
            raise ProtocolError(f"the decoded values of the request take more than {MAX_VALUES} bytes of memory")
        if self._values > FREE_VALUES:
            self.take(size)

    def close(self) -> None:
        """Free all memory that this request has taken."""
        if self._memory is not None and self._held:
            self._memory.release(self, self._held)
        self._held = 0


UNCOUNTED = Account(None, 0)  # the shared account of all requests that are too small to be counted
