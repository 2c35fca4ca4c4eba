"""A socket that a client reads and writes with deadlines.

System calls are slow in Python, because a thread releases the interpreter lock before each call and must get the lock
again after it. The stream therefore makes as few system calls as possible. To read, it first calls `recv` on a
non-blocking socket. If no bytes have arrived, the stream waits for bytes with `poll`, and calls `recv` again. One
call of `recv` can receive several small responses.
"""

from __future__ import annotations

import math
import select
import socket
import ssl
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
        self._pending = its_socket.pending if isinstance(its_socket, ssl.SSLSocket) else None
        self._input, self._output = select.poll(), select.poll()
        self._input.register(its_socket, select.POLLIN)
        self._output.register(its_socket, select.POLLOUT)
        self._ahead = b""  # bytes that the stream has received, and that no caller has read yet
        self.deadline = 0.0  # the deadline of all reads, as a value of time.monotonic()
        self.beginning = b""  # the first bytes that the server has sent

    def read(self, size: int) -> bytes:
        """Wait until bytes have arrived, and return at most `size` bytes. Raises TimeoutError at the deadline."""
        data = self._ahead or self._receive(max(size, READ_AHEAD))
        self._ahead = data[size:]
        return data[:size]

    def readinto(self, buffer: memoryview) -> int:
        """Wait until bytes have arrived, copy them to the start of `buffer`, and return the number of bytes."""
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
        """Call `receive` until it succeeds, and return its result. Before each further call, wait for bytes.

        Raises TimeoutError at the deadline.
        """
        while time.monotonic() < self.deadline:
            try:
                return receive()
            except BlockingIOError:
                _wait(self._input, self.deadline)
        raise TimeoutError

    def write(self, data: bytes, deadline: float) -> None:
        """Write all bytes of `data`. Raises TimeoutError if some bytes are not written at the deadline."""
        left = memoryview(data)
        while left:
            try:
                left = left[self._socket.send(left) :]
            except BlockingIOError:
                _wait(self._output, deadline)

    @property
    def has_buffered(self) -> bool:
        """Whether the stream has received bytes that no caller has read yet."""
        return bool(self._ahead) or (self._pending is not None and self._pending() > 0)

    @property
    def is_readable(self) -> bool:
        """Whether `read` would return immediately: bytes have arrived, or the server has closed the connection."""
        if self.has_buffered or not self._input.poll(0):
            return self.has_buffered
        return self._pending is None or self._has_decrypted()

    def _has_decrypted(self) -> bool:
        """Return whether data has arrived on a TLS connection, and not only internal messages of TLS.

        Internal messages, for example session tickets, contain no data for `read`. If the connection is closed or
        broken, the method also returns True, because `read` then returns or fails immediately.
        """
        try:
            self._ahead = self._socket.recv(READ_AHEAD)
        except BlockingIOError:
            return False
        except OSError:
            return True  # The next `read` raises this error.
        return True


def _wait(poll: select.poll, deadline: float) -> None:
    left = deadline - time.monotonic()
    if left <= 0 or not poll.poll(math.ceil(left * 1000)):
        raise TimeoutError
