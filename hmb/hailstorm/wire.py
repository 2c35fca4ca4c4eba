"""Frames on a socket: a length (uint32, big-endian), then a value of the codec.

The registry and the channels between processes use these frames. The receiver checks a length before it allocates
memory.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from hmb.hailstorm.codec import decode, encode
from hmb.hailstorm.errors import CodecError

LENGTH = struct.Struct(">I")
MAX_FRAME = 256 * 1024 * 1024  # bytes


class FrameSocket:
    """A connection that sends and receives values. One thread may receive while others send."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connection
        self._file = connection.makefile("rb", buffering=65536)
        self._lock = threading.Lock()  # held while a frame is sent

    @classmethod
    def connect(cls, address: tuple[str, int], timeout: float) -> Self:
        """Connect within `timeout` seconds. Raises OSError."""
        return cls(socket.create_connection(address, timeout))

    def set_timeout(self, seconds: float | None) -> None:
        """Limit the time of a call to `receive` or `send`.

        After this time the call raises TimeoutError. None is no limit.
        """
        self._socket.settimeout(seconds)

    def send(self, value: Any, gives_up: Callable[[], bool] = lambda: False) -> None:
        """Send a value. Raises OSError if the connection is broken, CodecError if the value is unknown or too large.

        If the connection is full for longer than the timeout, `send` tries again until `gives_up` returns True. It then
        raises TimeoutError, and the connection cannot be used any more.
        """
        content = encode(value)
        if len(content) > MAX_FRAME:
            raise CodecError(f"a message of {len(content)} bytes is too large: the limit is {MAX_FRAME}")
        left = memoryview(LENGTH.pack(len(content)) + content)
        with self._lock:
            while left:
                try:
                    left = left[self._socket.send(left) :]
                except TimeoutError:
                    if gives_up():
                        raise

    def receive(self) -> Any:
        """Return the next value.

        Raises OSError if the connection is closed or broken, CodecError if the bytes are not a value.
        """
        (length,) = LENGTH.unpack(self._read(LENGTH.size))
        if length > MAX_FRAME:
            raise CodecError(f"a frame of {length} bytes is too large: the limit is {MAX_FRAME}")
        return decode(self._read(length))

    def _read(self, size: int) -> bytes:
        content: bytes = self._file.read(size)
        if len(content) < size:
            raise ConnectionResetError("the connection was closed")
        return content

    def close(self) -> None:
        """Close the connection. A thread that waits in `receive` gets an OSError."""
        with suppress(OSError):  # The connection may be closed already.
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
