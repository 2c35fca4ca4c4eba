"""A socket that a client reads and writes with deadlines.

The socket never blocks. A thread that returns from a system call has to wait for Python's interpreter lock, so each
system call costs time. The stream therefore first tries to receive, and waits only if no bytes have arrived. If bytes
are already there, one call is enough. Small responses that arrive together are received with one call.
"""

from __future__ import annotations

import math
import select
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

READ_AHEAD = 8192  # bytes
T = TypeVar("T")


class SocketStream:
    """A TCP socket with a deadline for each read and each write."""

    def __init__(self, its_socket: socket.socket) -> None:
        its_socket.setblocking(False)
        self._socket = its_socket
        self._input, self._output = select.poll(), select.poll()
        self._input.register(its_socket, select.POLLIN)
        self._output.register(its_socket, select.POLLOUT)
        self._ahead = b""  # bytes that were received and not yet read
        self.deadline = 0.0  # the deadline of all reads (time.monotonic())
        self.beginning = b""  # the first bytes that the server has sent

    def read(self, size: int) -> bytes:
        """Wait for bytes, and return up to `size` of them. Raises TimeoutError at the deadline."""
        data = self._ahead or self._receive(max(size, READ_AHEAD))
        self._ahead = data[size:]
        return data[:size]

    def readinto(self, buffer: memoryview) -> int:
        """Wait for bytes, write them to the start of the buffer, and return their number."""
        if not self._ahead:
            return self._when_ready(partial(self._socket.recv_into, buffer))
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _receive(self, size: int) -> bytes:
        data = self._when_ready(partial(self._socket.recv, size))
        self.beginning = self.beginning or data[:4]
        return data

    def _when_ready(self, receive: Callable[[], T]) -> T:
        """Call `receive` when bytes have arrived. Raises TimeoutError at the deadline."""
        while time.monotonic() < self.deadline:
            try:
                return receive()
            except BlockingIOError:
                _wait(self._input, self.deadline)
        raise TimeoutError

    def write(self, data: bytes, deadline: float) -> None:
        """Write all bytes. Raises TimeoutError at the deadline."""
        left = memoryview(data)
        while left:
            try:
                left = left[self._socket.send(left) :]
            except BlockingIOError:
                _wait(self._output, deadline)

    @property
    def has_buffered(self) -> bool:
        """Whether the stream has received bytes that no caller has read yet."""
        return bool(self._ahead)

    @property
    def is_readable(self) -> bool:
        """Whether `read` would return at once: with bytes, or because the server has closed the connection."""
        return self.has_buffered or bool(self._input.poll(0))


def _wait(poll: select.poll, deadline: float) -> None:
    left = deadline - time.monotonic()
    if left <= 0 or not poll.poll(math.ceil(left * 1000)):
        raise TimeoutError
