"""Reads the requests of one client from its socket, with limits for memory and time.

The function `read_frame` (protocol/framing.py) is the simplest way to read a request. The class `Requests` does
three more things:
- *It reads ahead.* One system call reads up to READ_BUFFER bytes, which can contain several requests. The
  method `has_next_request` checks without waiting whether another request of the same API has arrived. The
  broker uses this method to send several responses together (gathering.py).
- *It limits memory.* The broker limits the total memory of all requests of more than COUNTED_FRAME bytes
  (request_memory.py).
- *It sets deadlines.* A new client must send its first request within a limited time. After the first part of a
  request, the client must send the rest within a limited time.

The tour of a Produce request (in `hmb/__init__.py`) contains only one method of this module, `Requests.next`. On
a first reading, you can skip the rest of the module.
"""

from __future__ import annotations

import time
from io import BufferedReader, FileIO
from typing import TYPE_CHECKING, Any, Self

from hmb.broker.network.request_memory import UNCOUNTED, RequestMemory
from hmb.protocol.framing import LENGTH_SIZE, read_body, read_size
from hmb.protocol.headers import API_KEY_SIZE

if TYPE_CHECKING:
    from hmb.broker.security.tls import TlsFile

FIRST_REQUEST_TIMEOUT = 10.0  # a new client must send its first request within this number of seconds
CHUNK_TIMEOUT = 30.0  # seconds in which the rest of a request, or the next megabyte of a large request, must arrive
READ_BUFFER = 32 * 1024  # size of each connection's read buffer, in bytes
# A request of at most 1,024 bytes takes at most 0.5 MB after decoding. The broker therefore counts only the memory of
# larger requests.
COUNTED_FRAME = 1024


class Requests:
    """The requests of one client, as frames in the order in which the client sends them.

    `deadline` is the time by which the client must send the next bytes. A new client has a deadline for its first
    request. Later, a client has a deadline only if the broker has read a part of a request and waits for the rest.
    In all other cases `deadline` is None.
    """

    def __init__(self, source: int | TlsFile, max_request: int, memory: RequestMemory) -> None:
        """Read from `source`: the descriptor of a socket, or the decrypted bytes of a connection with TLS."""
        # `_CountingFile` is a subclass of FileIO. The object from the method `socket.makefile` would be slower, because
        # that object runs more Python code for each read.
        self._file = _CountingFile(source, "rb", closefd=False) if isinstance(source, int) else source
        self._stream = BufferedReader(self._file, READ_BUFFER)
        self.limit = max_request  # bytes; the size of the largest request that the client may send now
        self._memory = memory
        self._taken = 0  # bytes of all frames that `next` has returned, including their length fields
        self._api_key = b""  # the API key of the frame that `next` returned last
        self.account = UNCOUNTED  # counts the memory of the frame that `next` returned last
        self.is_first = True
        self.deadline: float | None = time.monotonic() + FIRST_REQUEST_TIMEOUT

    def next(self) -> memoryview | None:
        """Wait for the next frame, and return it. Return None if the client has closed the connection.

        Raises ProtocolError, OSError, CloseConnection.
        """
        self.account = UNCOUNTED
        size = read_size(self._stream, self.limit)
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

    @property
    def api_key(self) -> int:
        """The API key of the request that `next` has returned last."""
        return int.from_bytes(self._api_key)

    def _admit(self, chunk: int) -> None:
        """Set the client's deadline for the next `chunk` bytes of a frame, or keep the present deadline.

        If the frame is larger than the read buffer, the method takes `chunk` bytes from the memory budget
        (request_memory.py), and waits if too few bytes are free. It then sets a new deadline.

        If the frame fits into the read buffer, the method sets a new deadline. But the first frame of a connection
        already has a deadline, and keeps it.
        """
        if self.account.frame_size > READ_BUFFER:
            self.deadline = None  # The client has no deadline while the broker waits for memory.
            self.account.take(chunk)
        elif self.is_first:
            return
        self.deadline = time.monotonic() + CHUNK_TIMEOUT

    def has_next_request(self) -> bool:
        """Return whether the next request has fully arrived and calls the same API as the previous request.

        This method never waits.
        """
        here = self._file.count - self._taken
        if here < LENGTH_SIZE + API_KEY_SIZE:
            return False  # `peek` would wait for the missing bytes.
        start = self._stream.peek(LENGTH_SIZE + API_KEY_SIZE)
        size = int.from_bytes(start[:LENGTH_SIZE])
        return here >= LENGTH_SIZE + size and start[LENGTH_SIZE : LENGTH_SIZE + API_KEY_SIZE] == self._api_key

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.account.close()  # The account is still open if the last frame was incomplete, or if its handling failed.
        self._stream.close()


class _CountingFile(FileIO):
    """A file that counts the bytes that callers have read from this file."""

    count = 0

    def readinto(self, buffer: Any, /) -> int | None:
        size = super().readinto(buffer)
        self.count += size or 0
        return size
