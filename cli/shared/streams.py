"""Standard streams that are closed, full or no longer read.

A shell can start a command without standard streams (`<&-`, `>&-`). The next file or socket would then get the number
of the missing stream, and a line for the user would be written into a file. `prepare_streams` opens missing streams
first: reading returns nothing, and writing fails.

An OSError does not show which file it belongs to. `prepare_streams` therefore replaces standard output by a stream
whose errors are `OutputError`.
"""

from __future__ import annotations

import io
import os
import select
import sys
from typing import Any, TextIO


class OutputError(OSError):
    """Standard output cannot be written, for example because a disk is full.

    If the reader has left, the error is BrokenPipeError instead.
    """


class _StandardOutput(io.FileIO):
    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except (BrokenPipeError, BlockingIOError):
            raise
        except OSError as error:
            raise OutputError(error.errno, error.strerror) from error


def reader_has_left() -> bool:
    """Whether standard output is a pipe without a reader, as after `| head`.

    A write would fail, too, but a command that waits for records may have nothing to write for a long time.
    """
    try:
        output = sys.stdout.fileno()
    except OSError:  # A test can replace standard output by a stream without a descriptor.
        return False
    poll = select.poll()
    poll.register(output, 0)  # poll() reports errors even if no event is requested.
    return any(event & select.POLLERR for _, event in poll.poll(0))


def write_out(data: bytes) -> None:
    """Write bytes to standard output without a buffer.

    Ctrl-C can interrupt a buffer directly after its system call. The buffer would then write the same bytes again when
    the program ends.
    """
    raw = getattr(sys.stdout.buffer, "raw", None)
    if raw is None:  # A test can replace standard output by a stream in memory.
        sys.stdout.buffer.write(data)
        return
    left = memoryview(data)
    while left:
        written = raw.write(left)
        if written is None:  # The pipe is full, and another process made it non-blocking.
            select.select([], [raw], [])
        else:
            left = left[written:]


def prepare_streams() -> None:
    """Open the standard streams that are closed, and let errors of standard output raise OutputError."""
    for number, stream, way in (
        (0, sys.stdin, os.O_RDONLY),
        (1, sys.stdout, os.O_RDONLY),
        (2, sys.stderr, os.O_WRONLY),
    ):
        if stream is None:
            opened = os.open(os.devnull, way)  # The system assigns the smallest free descriptor.
            assert opened == number
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is sys.__stdout__:  # A test replaces standard output by its own stream.
        sys.stdout = _with_own_errors(sys.stdout)


def _with_own_errors(stdout: TextIO | None) -> TextIO:
    raw = _StandardOutput(1, "w", closefd=False)
    buffer = io.BufferedWriter(raw)
    if not isinstance(stdout, io.TextIOWrapper):
        return io.TextIOWrapper(buffer, encoding="utf-8")
    stdout.flush()
    return io.TextIOWrapper(
        buffer,
        encoding=stdout.encoding,
        errors=stdout.errors,
        line_buffering=stdout.line_buffering,
        write_through=stdout.write_through,
    )


def mute_stdout() -> None:
    """Send everything that standard output still buffers to /dev/null, so that Python's last flush does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
