"""One client's connection and its thread: read a frame, dispatch the request, send the answer."""

from __future__ import annotations

import contextlib
import logging
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from io import BufferedReader, FileIO
from typing import Any, Self

from hmb.broker.dispatch import Dispatcher
from hmb.broker.errors import CloseConnection
from hmb.broker.network.gathering import AnswerQueue
from hmb.broker.network.request_memory import UNCOUNTED, RequestMemory
from hmb.broker.network.sending import STALL
from hmb.protocol.errors import ProtocolError
from hmb.protocol.framing import read_body, read_size

LOGGER = logging.getLogger(__name__)
FIRST_REQUEST_TIMEOUT = 10.0  # seconds from the beginning of a connection to the end of its first request
CHUNK_TIMEOUT = 30.0  # seconds in which the rest of a request must arrive; for a large request, the next megabyte
READ_BUFFER = 128 * 1024  # bytes; one system call reads several pipelined requests
LENGTH_SIZE, API_KEY_SIZE = 4, 2  # bytes at the beginning of a request
COUNTED_FRAME = 1024  # bytes; a smaller frame is not counted, because its values take at most half a megabyte


class AcceptedConnection:
    """Serves one socket until the client leaves, breaks the protocol, or the broker stops.

    Every wait ends: a read after `idle` seconds, a write after STALL (sending.py). The kernel keeps both limits
    (SO_RCVTIMEO, SO_SNDTIMEO), because a time limit of Python's socket costs a poll() before each read. `deadline` is
    set while the connection waits for the first request, or for the rest of a request. The server closes a connection
    that misses its deadline.
    """

    def __init__(
        self,
        client: socket.socket,
        peer: str,
        dispatcher: Dispatcher,
        *,
        idle: float,
        max_request: int,
        memory: RequestMemory,
        on_close: Callable[[AcceptedConnection], None],
    ) -> None:
        self._socket = client
        self._peer = peer
        self._dispatcher = dispatcher
        self._requests = Requests(client.fileno(), max_request, memory)
        self._on_close = on_close
        self._stopping = False
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _timeval(idle))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(STALL))
        self.thread = threading.Thread(target=self._run, name=f"connection-{peer}", daemon=True)

    def __str__(self) -> str:
        return self._peer

    @property
    def deadline(self) -> float | None:
        """The time of the monotonic clock at which the rest of a request must be here; None if there is no limit."""
        return self._requests.deadline

    @property
    def is_silent(self) -> bool:
        """Whether the client has not sent a whole request yet."""
        return self._requests.is_first

    def stop(self) -> None:
        """Answer the request that has begun, and begin no other, even if it has arrived already."""
        self._stopping = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RD)

    def close(self) -> None:
        """Close the socket at once, even during a request."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        LOGGER.info("%s connected", self._peer)
        try:
            self._serve()
        except (CloseConnection, ProtocolError) as error:
            LOGGER.warning("closing %s: %s", self._peer, error)
        except OSError as error:
            LOGGER.info("lost %s: %s", self._peer, error)
        finally:
            self._socket.close()
            self._on_close(self)
            LOGGER.info("%s disconnected", self._peer)

    def _serve(self) -> None:
        answers = AnswerQueue(self._socket)
        try:
            with self._requests as requests:
                while not self._stopping and (frame := requests.next()) is not None:
                    if self._stopping:
                        break
                    answers.add(self._dispatcher.begin(frame, requests.account))
                    requests.account.close()
                    if not (answers.may_wait and requests.is_another_here()):
                        answers.send()
        finally:  # for the requests that were begun before one that cannot be answered
            answers.send()


class Requests:
    """The frames that a client sends."""

    def __init__(self, descriptor: int, max_request: int, memory: RequestMemory) -> None:
        # FileIO reads with less Python code than socket.makefile.
        self._file = _CountingFile(descriptor, "rb", closefd=False)
        self._stream = BufferedReader(self._file, READ_BUFFER)
        self._max_request = max_request
        self._memory = memory
        self._taken = 0  # bytes of the returned frames, with their lengths
        self._api_key = b""  # API key of the last frame
        self.account = UNCOUNTED  # memory of the last frame
        self.is_first = True
        self.deadline: float | None = time.monotonic() + FIRST_REQUEST_TIMEOUT

    def next(self) -> memoryview | None:
        """Wait for the next frame; return None at the end of the stream.

        Raises ProtocolError, OSError, CloseConnection.
        """
        self.account = UNCOUNTED
        size = read_size(self._stream, self._max_request)
        if size is None:
            return None
        if size > COUNTED_FRAME:
            self.account = self._memory.open(size)
        if self._file.count - self._taken >= LENGTH_SIZE + size:
            frame = memoryview(self._stream.read(size))
        else:
            frame = read_body(self._stream, size, self._admit)
        if self.deadline is not None:
            self.is_first, self.deadline = False, None
        self._taken += LENGTH_SIZE + size
        self._api_key = bytes(frame[:API_KEY_SIZE])
        return frame

    def _admit(self, chunk: int) -> None:
        """Reserve memory for the next chunk of a frame that has not arrived yet, and set the chunk's deadline."""
        if self.account.frame_size > READ_BUFFER:
            self.deadline = None  # the broker causes this delay, not the client
            self.account.take(chunk)
        elif self.is_first:
            return
        self.deadline = time.monotonic() + CHUNK_TIMEOUT

    def is_another_here(self) -> bool:
        """Return, without waiting, whether the next request has arrived whole and has the API of the last one."""
        here = self._file.count - self._taken
        if here < LENGTH_SIZE + API_KEY_SIZE:
            return False  # `peek` could wait
        start = self._stream.peek(LENGTH_SIZE + API_KEY_SIZE)
        size = int.from_bytes(start[:LENGTH_SIZE])
        return here >= LENGTH_SIZE + size and start[LENGTH_SIZE : LENGTH_SIZE + API_KEY_SIZE] == self._api_key

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.account.close()  # for a frame that did not arrive whole, or that could not be handled
        self._stream.close()


class _CountingFile(FileIO):
    """A file that counts the bytes that were read from it."""

    count = 0

    def readinto(self, buffer: Any, /) -> int | None:
        size = super().readinto(buffer)
        self.count += size or 0
        return size


def has_left(client: socket.socket) -> bool:
    """Return whether the client has closed the connection, or the connection is broken.

    POLLRDHUP (Linux) reports this even if unread requests precede the end. POLLHUP and POLLERR are always reported.
    """
    poll = select.poll()
    poll.register(client, getattr(select, "POLLRDHUP", 0))
    return bool(poll.poll(0))


def _timeval(seconds: float) -> bytes:
    return struct.pack("@ll", int(seconds), int(seconds % 1 * 1_000_000))
