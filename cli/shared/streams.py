"""Standard streams that are closed, full, or read no more.

A shell can start a command without them (`<&-`, `>&-`): then the next file or socket would get the number of such a
stream, and somebody's record would be "printed" into it. So they are opened first: what is read is empty, what is
written fails. And an OSError does not say of which file it is, so standard output gets a name for its own.
"""

import io
import os
import select
import sys
from typing import Any, TextIO


class OutputError(OSError):
    """Standard output takes nothing any more, and not because its reader has gone (BrokenPipeError)."""


class _StandardOutput(io.FileIO):
    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except (BrokenPipeError, BlockingIOError):
            raise
        except OSError as error:
            raise OutputError(error.errno, error.strerror) from error


def reader_has_left() -> bool:
    """Whether standard output is a pipe that nobody reads any more, as after `| head`.

    A write would tell as well, but a command that waits for records may have nothing to write for a long time.
    """
    try:
        output = sys.stdout.fileno()
    except OSError:  # a test's own stream
        return False
    poll = select.poll()
    poll.register(output, 0)  # errors are told whatever one asks for
    return any(event & select.POLLERR for _, event in poll.poll(0))


def write_out(data: bytes) -> None:
    """Write to standard output with no buffer in between.

    A buffer that Ctrl-C interrupts right after its system call does not know that the data are written, and writes them
    once more when the program ends.
    """
    raw = getattr(sys.stdout.buffer, "raw", None)
    if raw is None:  # a test's own stream
        sys.stdout.buffer.write(data)
        return
    left = memoryview(data)
    while left:
        written = raw.write(left)
        if written is None:  # it is a pipe that somebody made non-blocking
            select.select([], [raw], [])
        else:
            left = left[written:]


def prepare_streams() -> None:
    """Open the streams that are closed, and have standard output say what it is when it fails."""
    for number, stream, way in (
        (0, sys.stdin, os.O_RDONLY),
        (1, sys.stdout, os.O_RDONLY),
        (2, sys.stderr, os.O_WRONLY),
    ):
        if stream is None:
            opened = os.open(os.devnull, way)  # the system gives the smallest number that is free
            assert opened == number
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is sys.__stdout__:  # tests have one of their own
        sys.stdout = _named(sys.stdout)


def _named(stdout: TextIO | None) -> TextIO:
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
    """After an error in writing: let Python's last flush go nowhere, so that it says nothing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
