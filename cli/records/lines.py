"""Read a stream line by line. A line has a limited length, and another thread can stop the reading.

`hmb produce` cannot read its input with a file object of Python. A file object does not limit the length of a line, and
no thread can stop another thread that waits for a line. The class `Lines` solves both problems.

Python's file objects read lines of any length. A line without an end (for example from /dev/zero) would fill the
memory. `Lines` therefore limits the length of a line.

When a thread waits for the next line of a file object, no other thread can wake it. When the delivery of a record
fails, `hmb produce` must end, but the next line may arrive hours later. `Lines` therefore has a method `stop`, with
which another thread ends the wait.

A thread that reads from a `Lines` object calls select() to wait. The call returns when new input arrives, or when a
byte arrives at a socket. Any other thread can call the method `Lines.stop`, which sends a byte to this socket. The
waiting thread then continues, and stops reading.

`Lines` yields lists of lines. Each list contains the new lines since the previous list: one line from a terminal, or
thousands of lines from a file.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from contextlib import suppress
from io import UnsupportedOperation
from typing import BinaryIO

from ..shared.errors import CliError

MAX_LINE = 16 * 1024 * 1024  # bytes; by default, brokers accept only 1 MiB
BLOCK = 256 * 1024  # the maximum number of bytes in one read


class Lines:
    """An iterator that reads a stream, and yields lists of lines. The lines do not include delimiters."""

    def __init__(self, stream: BinaryIO, name: str = "standard input", delimiter: bytes = b"\n") -> None:
        self._stream, self._name, self._delimiter = stream, name, delimiter
        try:
            self._descriptor: int | None = stream.fileno()
        except UnsupportedOperation:  # A stream in memory has no descriptor. A read from it never waits.
            self._descriptor = None
        self._woken, self._waker = socket.socketpair()
        self.bytes_read = 0

    def stop(self) -> None:
        """End the iteration, even while a thread waits for input. Any thread may call `stop`.

        If the iterator has read the beginning of a line, but not its end, it still yields this incomplete line.
        """
        with suppress(OSError):  # The sockets may be closed already.
            self._waker.send(b"\0")

    def close(self) -> None:
        self._woken.close()
        self._waker.close()

    def __iter__(self) -> Iterator[list[bytes]]:
        read, delimiter = self._stream.read1, self._delimiter  # type: ignore[attr-defined]
        number = 1  # the number of the line that begins in the buffer
        buffer = bytearray()
        searched = 0  # the number of bytes at the start of the buffer that contain no delimiter
        while self._wait() and (block := read(BLOCK)):
            self.bytes_read += len(block)
            buffer += block
            if buffer.find(delimiter, searched) >= 0:
                *lines, rest = bytes(buffer).split(delimiter)
                yield lines
                number += len(lines)
                buffer = bytearray(rest)
            searched = max(0, len(buffer) - len(delimiter) + 1)
            if len(buffer) > MAX_LINE:
                raise CliError(f"{self._name}, line {number}: more than {MAX_LINE:,} bytes; is the input text?")
        if buffer:
            yield [bytes(buffer)]

    def _wait(self) -> bool:
        """Wait until the stream has input or ends. Return False if `stop` was called."""
        if self._descriptor is None:
            return True
        woken = self._woken.fileno()
        return woken not in select.select([self._descriptor, woken], [], [])[0]
