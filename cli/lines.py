"""Standard input, line by line, with two cares that a file object does not take.

A line has a bound: what never sends a newline (a disk image, /dev/zero) must not be read until memory ends. And who
waits for a line hears nothing else: if a delivery fails meanwhile, the next line may be hours away. So `Lines` waits
with select() for its input and for a socket of its own, which `stop` writes to (the "self-pipe trick").
"""

import select
import socket
from collections.abc import Iterator
from contextlib import suppress
from io import UnsupportedOperation
from typing import BinaryIO

from .common import CliError

MAX_LINE = 16 * 1024 * 1024  # bytes; far above what a broker takes by default
BLOCK = 256 * 1024  # bytes to read at once


class Lines:
    """The lines of a stream, each without its newline."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        try:
            self._descriptor: int | None = stream.fileno()
        except UnsupportedOperation:
            self._descriptor = None  # a stream in memory: nothing to wait for
        self._woken, self._waker = socket.socketpair()

    def stop(self) -> None:
        """End at the next line, or right away if it is being waited for; from any thread."""
        with suppress(OSError):  # closed already
            self._waker.send(b"\0")

    def close(self) -> None:
        self._woken.close()
        self._waker.close()

    def __iter__(self) -> Iterator[bytes]:
        number = 1  # of the line whose pieces these are
        pieces: list[bytes] = []
        while self._wait() and (block := self._stream.read1(BLOCK)):  # type: ignore[attr-defined]
            end, newline, rest = block.partition(b"\n")
            pieces.append(end)
            if sum(map(len, pieces)) > MAX_LINE:
                raise CliError(f"standard input, line {number}: longer than {MAX_LINE:,} bytes; is it text?")
            if newline:
                yield b"".join(pieces)
                *lines, last = rest.split(b"\n")
                yield from lines
                number += 1 + len(lines)
                pieces = [last]
        if last_line := b"".join(pieces):
            yield last_line

    def _wait(self) -> bool:
        """Wait for input, or its end; False if there was a `stop`."""
        if self._descriptor is None:
            return True
        woken = self._woken.fileno()
        return woken not in select.select([self._descriptor, woken], [], [])[0]
