"""Sends values on a socket in frames. A frame is a length (uint32, big-endian), followed by the encoded value.

The registry and the connections between processes send their values in frames: a length, then a value. The receiver
checks the length of a frame before it allocates memory for the frame.
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
    """A connection that sends and receives values. One thread may receive while other threads send."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connection
        self._file = connection.makefile("rb", buffering=65536)
        self._lock = threading.Lock()  # held while a frame is sent

    @classmethod
    def connect(cls, address: tuple[str, int], timeout: float) -> Self:
        """Connect to an address within `timeout` seconds. Raises OSError if the connection fails."""
        return cls(socket.create_connection(address, timeout))

    def set_timeout(self, seconds: float | None) -> None:
        """Limit the time (s) that the socket waits in one call to `receive` or `send`.

        After this time the call raises TimeoutError. None means no limit.
        """
        self._socket.settimeout(seconds)

    def send(self, value: Any, gives_up: Callable[[], bool] = lambda: False) -> None:
        """Send a value. Wait while the receiver is too slow to accept more bytes.

        Suppose that the timeout of the socket is 2 seconds. If the socket accepts no bytes for 2 seconds, `send`
        calls `gives_up`. If the result is False, `send` continues to wait. If it is True, `send` raises TimeoutError.
        Close the connection after this error, because the receiver may have only a part of the value.

        Raises OSError if the connection is broken, and CodecError if the value cannot be encoded or is too large.
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
        """Wait for the next value, and return it.

        Raises OSError if the connection is closed or broken, and CodecError if the value is too large or malformed.
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
        with suppress(OSError):  # `shutdown` fails if the connection is closed already.
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
