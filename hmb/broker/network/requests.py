"""Reading the requests of one client: ahead of their handling, with limits for memory and time.

The plain way to read a request is `read_frame` (protocol/framing.py). `Requests` adds three things to it:

- *Reading ahead.* One system call reads all pipelined requests that fit into READ_BUFFER. `is_another_here` looks for
  the next request without waiting (gathering.py).
- *Memory.* Each frame above COUNTED_FRAME bytes is counted against the memory of all requests (request_memory.py).
- *Deadlines.* A client that begins a request must send the rest of it in time.

A first reading of the broker can skip this module.
"""

from __future__ import annotations

import time
from io import BufferedReader, FileIO
from typing import Any, Self

from hmb.broker.network.request_memory import UNCOUNTED, RequestMemory
from hmb.protocol.framing import read_body, read_size

FIRST_REQUEST_TIMEOUT = 10.0  # seconds from the beginning of a connection to the end of its first request
CHUNK_TIMEOUT = 30.0  # seconds in which the rest of a request must arrive; for a large request, the next megabyte
READ_BUFFER = 32 * 1024  # bytes, of each connection; one system call reads several pipelined requests
LENGTH_SIZE, API_KEY_SIZE = 4, 2  # bytes at the beginning of a request
COUNTED_FRAME = 1024  # bytes; a smaller frame is not counted, because its values take at most half a megabyte


class Requests:
    """The frames that one client sends.

    `deadline` is set while the first request is incomplete, and while the rest of a later request is missing.
    """

    def __init__(self, descriptor: int, max_request: int, memory: RequestMemory) -> None:
        # FileIO and not socket.makefile, whose methods run more Python code for each read.
        self._file = _CountingFile(descriptor, "rb", closefd=False)
        self._stream = BufferedReader(self._file, READ_BUFFER)
        self._max_request = max_request
        self._memory = memory
        self._taken = 0  # bytes of all returned frames, including their lengths
        self._api_key = b""  # the API key of the last frame
        self.account = UNCOUNTED  # the memory of the last frame
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
            self.deadline = None  # The time in which the broker waits for memory does not count against the client.
            self.account.take(chunk)
        elif self.is_first:
            return
        self.deadline = time.monotonic() + CHUNK_TIMEOUT

    def is_another_here(self) -> bool:
        """Return whether the next request has arrived completely and has the API of the last request. Do not wait."""
        here = self._file.count - self._taken
        if here < LENGTH_SIZE + API_KEY_SIZE:
            return False  # `peek` could wait for more bytes.
        start = self._stream.peek(LENGTH_SIZE + API_KEY_SIZE)
        size = int.from_bytes(start[:LENGTH_SIZE])
        return here >= LENGTH_SIZE + size and start[LENGTH_SIZE : LENGTH_SIZE + API_KEY_SIZE] == self._api_key

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.account.close()  # The last frame may be incomplete, or its handling may have failed.
        self._stream.close()


class _CountingFile(FileIO):
    """A file that counts the bytes that were read from it."""

    count = 0

    def readinto(self, buffer: Any, /) -> int | None:
        size = super().readinto(buffer)
        self.count += size or 0
        return size
