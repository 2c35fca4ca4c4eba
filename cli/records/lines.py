"""Standard input or a file in lines, with two cares that a file object does not take.

A line has a bound: what never sends a newline (a disk image, /dev/zero) must not be read until memory ends. And who
waits for a line hears nothing else: if a delivery fails meanwhile, the next line may be hours away. So `Lines` waits
with select() for its input and for a socket of its own, which `stop` writes to (the "self-pipe trick").

What has come is handed out at once and together: a line of a terminal alone, thousands of a file at a time.
"""

import select
import socket
from collections.abc import Iterator
from contextlib import suppress
from io import UnsupportedOperation
from typing import BinaryIO

from ..shared.common import CliError

MAX_LINE = 16 * 1024 * 1024  # bytes; far above what a broker takes by default
BLOCK = 256 * 1024  # bytes to read at once


class Lines:
    """The lines of a stream, each without its delimiter, in the portions in which they come."""

    def __init__(self, stream: BinaryIO, name: str = "standard input", delimiter: bytes = b"\n") -> None:
        self._stream, self._name, self._delimiter = stream, name, delimiter
        try:
            self._descriptor: int | None = stream.fileno()
        except UnsupportedOperation:
            self._descriptor = None  # a stream in memory: nothing to wait for
        self._woken, self._waker = socket.socketpair()
        self.bytes_read = 0

    def stop(self) -> None:
        """End at the next portion, or right away if it is being waited for; from any thread."""
        with suppress(OSError):  # closed already
            self._waker.send(b"\0")

    def close(self) -> None:
        self._woken.close()
        self._waker.close()

    def __iter__(self) -> Iterator[list[bytes]]:
        read, delimiter = self._stream.read1, self._delimiter  # type: ignore[attr-defined]
        number = 1  # of the line whose beginning is in the buffer
        buffer = bytearray()
        searched = 0  # there is no delimiter before
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
        """Wait for input, or its end; False if there was a `stop`."""
        if self._descriptor is None:
            return True
        woken = self._woken.fileno()
        return woken not in select.select([self._descriptor, woken], [], [])[0]
