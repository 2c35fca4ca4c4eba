"""A stream in lines, with a limit for a line and with a way to stop.

A file object of Python has two problems. It reads a line of any length, so /dev/zero would fill the memory. And nothing
can wake a thread that waits for the next line. If a delivery fails, the command must end, but the next line may arrive
hours later. `Lines` therefore waits with select() for its stream and for a second socket, to which `stop` writes (the
self-pipe trick).

`Lines` returns all lines that have arrived as one list: a single line from a terminal, thousands from a file.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from contextlib import suppress
from io import UnsupportedOperation
from typing import BinaryIO

from ..shared.errors import CliError

MAX_LINE = 16 * 1024 * 1024  # bytes; brokers accept 1 MiB by default
BLOCK = 256 * 1024  # the maximum number of bytes in one read


class Lines:
    """The lines of a stream, each without its delimiter, in lists of lines that arrived together."""

    def __init__(self, stream: BinaryIO, name: str = "standard input", delimiter: bytes = b"\n") -> None:
        self._stream, self._name, self._delimiter = stream, name, delimiter
        try:
            self._descriptor: int | None = stream.fileno()
        except UnsupportedOperation:  # A stream in memory never waits.
            self._descriptor = None
        self._woken, self._waker = socket.socketpair()
        self.bytes_read = 0

    def stop(self) -> None:
        """End the iteration before the next list, also while it waits. Any thread may call this."""
        with suppress(OSError):  # The sockets may be closed already.
            self._waker.send(b"\0")

    def close(self) -> None:
        self._woken.close()
        self._waker.close()

    def __iter__(self) -> Iterator[list[bytes]]:
        read, delimiter = self._stream.read1, self._delimiter  # type: ignore[attr-defined]
        number = 1  # the number of the line that begins in the buffer
        buffer = bytearray()
        searched = 0  # bytes of the buffer that do not contain a delimiter
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
                raise CliError(f"{self._name}, line {number}: longer than {MAX_LINE:,} bytes; is it text?")
        if buffer:
            yield [bytes(buffer)]

    def _wait(self) -> bool:
        """Wait for input or its end. Return False after `stop`."""
        if self._descriptor is None:
            return True
        woken = self._woken.fileno()
        return woken not in select.select([self._descriptor, woken], [], [])[0]
