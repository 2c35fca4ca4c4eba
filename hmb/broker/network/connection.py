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
FIRST_REQUEST_TIMEOUT = 10.0  # seconds from the connection's beginning to the end of its first request
CHUNK_TIMEOUT = 30.0  # seconds: a request that has begun arrives, and a large one by the megabyte
READ_BUFFER = 128 * 1024  # bytes: pipelined requests come in with one system call
LENGTH_SIZE, API_KEY_SIZE = 4, 2  # bytes at the start of a request
COUNTED_FRAME = 1024  # bytes: what a smaller request decodes to, half a megabyte at most, is not counted


class Connection:
    """Serves one socket until the client leaves, breaks the protocol, or the broker stops.

    Every wait has an end: a read after `idle` seconds, a write after STALL (sending.py).  Both limits are the kernel's
    (SO_RCVTIMEO, SO_SNDTIMEO), because a timeout of Python's costs a poll() before each read.  While the first request,
    or the rest of a later one, is awaited, `deadline` is set, and the server closes a connection that misses it.
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
        on_close: Callable[[Connection], None],
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
        """The time of the monotonic clock at which the request that is awaited must be here; None: any time will do."""
        return self._requests.deadline

    @property
    def is_silent(self) -> bool:
        """Whether the client has not sent a whole request yet."""
        return self._requests.is_first

    def stop(self) -> None:
        """The request under way is answered, no further one is begun, not even one that has come already."""
        self._stopping = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RD)

    def close(self) -> None:
        """Cut it off, whatever it is doing."""
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
        finally:  # requests that were begun before one that cannot be answered
            answers.send()


class Requests:
    """The frames that come from a socket."""

    def __init__(self, descriptor: int, max_request: int, memory: RequestMemory) -> None:
        # A file on the descriptor reads with little Python code in between, unlike socket.makefile.
        self._file = _CountingFile(descriptor, "rb", closefd=False)
        self._stream = BufferedReader(self._file, READ_BUFFER)
        self._max_request = max_request
        self._memory = memory
        self._taken = 0  # bytes of the frames that were returned, with their lengths
        self._api_key = b""  # of the last frame
        self.account = UNCOUNTED  # of the last frame
        self.is_first = True
        self.deadline: float | None = time.monotonic() + FIRST_REQUEST_TIMEOUT

    def next(self) -> memoryview | None:
        """Wait for the next frame; None at the end.  Raises ProtocolError, OSError, CloseConnection."""
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
        """Make room for the next chunk of a frame that is not here yet, and set the time until which it must arrive."""
        if self.account.frame_size > READ_BUFFER:
            self.deadline = None  # the client does not cause this delay
            self.account.take(chunk)
        elif self.is_first:
            return
        self.deadline = time.monotonic() + CHUNK_TIMEOUT

    def is_another_here(self) -> bool:
        """Whether a request of the same API as the last one is next and has arrived whole; without waiting."""
        here = self._file.count - self._taken
        if here < LENGTH_SIZE + API_KEY_SIZE:
            return False  # and `peek` might wait
        start = self._stream.peek(LENGTH_SIZE + API_KEY_SIZE)
        size = int.from_bytes(start[:LENGTH_SIZE])
        return here >= LENGTH_SIZE + size and start[LENGTH_SIZE : LENGTH_SIZE + API_KEY_SIZE] == self._api_key

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.account.close()  # of a frame that did not arrive whole, or could not be handled
        self._stream.close()


class _CountingFile(FileIO):
    """Knows how many bytes have been read."""

    count = 0

    def readinto(self, buffer: Any, /) -> int | None:
        size = super().readinto(buffer)
        self.count += size or 0
        return size


def has_left(client: socket.socket) -> bool:
    """Whether the other side has closed the connection, or it broke; who reads from it would learn that in time.

    POLLRDHUP (Linux) says so even where requests come before the end; POLLHUP and POLLERR are always told.
    """
    poll = select.poll()
    poll.register(client, getattr(select, "POLLRDHUP", 0))
    return bool(poll.poll(0))


def _timeval(seconds: float) -> bytes:
    return struct.pack("@ll", int(seconds), int(seconds % 1 * 1_000_000))
