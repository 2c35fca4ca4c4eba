"""Limits the memory of a producer: the bytes of all records that wait in the producer's queues.

A thread that adds a record takes memory for the record. If too little memory is free, the thread waits. When a batch
is completed, the producer frees the memory of its records. The thread that has waited longest gets memory first.
Otherwise, threads with small records could take all the memory that becomes free, and a thread with a large record
could wait forever.

Source: Kafka's `BufferPool`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class BufferMemory:
    """The memory for the records of one accumulator.

    The caller of each method must hold the accumulator's lock. Reading `used` needs no lock.

    - `free` is the number of free bytes. It can become negative, because an empty buffer accepts a record of any
      size.
    - `waiting` contains one object for each thread that waits for memory. The thread that has waited longest comes
      first.
    """

    def __init__(self, lock: threading.Lock, size: int, max_block: float) -> None:
        self._size, self._max_block = size, max_block
        self._freed = threading.Condition(lock)
        self.free = size
        self.waiting: deque[object] = deque()

    @property
    def used(self) -> int:
        return self._size - self.free

    def release(self, size: int) -> None:
        """Add `size` bytes to the free memory, and wake the waiting threads."""
        self.free += size
        self._freed.notify_all()

    def release_all(self) -> None:
        """Free the whole memory, and wake the waiting threads."""
        self.release(self.used)

    def wait(self, size: int, is_closed: Callable[[], bool]) -> None:
        """Wait for `size` free bytes. The thread that has waited longest gets memory first.

        If the buffer is empty, a record of any size fits. If the producer is closed, the method returns. Raises
        TimeoutError after `max_block` seconds.
        """
        ticket = object()
        self.waiting.append(ticket)

        def can_continue() -> bool:
            is_enough = not self.used or size <= self.free
            return is_closed() or (is_enough and self.waiting[0] is ticket)

        try:
            in_time = self._freed.wait_for(can_continue, self._max_block)
        finally:
            self.waiting.remove(ticket)
            self._freed.notify_all()  # The next waiting thread may continue if its record fits now.
        if not in_time:
            what = f"the buffer holds {self.used:,} of {self._size:,} bytes (buffer_memory)"
            raise TimeoutError(f"{what}; the producer waited {self._max_block:g} s for {size:,} free bytes")
