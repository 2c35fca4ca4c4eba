"""Handle three problems of standard streams: a closed stream, a full disk, and a pipe that nobody reads any more.

In a shell, `command >&-` starts a command with a closed standard output. Descriptor 1 is then free, so the
operating system would assign it to the next file that the command opens. The command would print its output
into this file.

If a standard stream is closed, `prepare_streams` opens a substitute for it. Reading from the substitute for
standard input returns no bytes. Writing to the substitute for standard output fails.

When a write fails, Python raises an OSError that does not contain the name of the file. `prepare_streams` therefore
replaces standard output by a stream that raises `OutputError`. The command can then report that standard output could
not be written.
"""

from __future__ import annotations

import io
import os
import select
import sys
from typing import Any, TextIO


class OutputError(OSError):
    """A write to standard output failed, for example because a disk is full.

    If standard output is a pipe that nobody reads any more, Python raises BrokenPipeError instead.
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
    """Return whether standard output is a pipe that nobody reads any more. For example, `| head` ends after ten lines.

    A command that writes to such a pipe gets an error. But a command that waits for records may write nothing for
    hours, and would not notice that it can end. Such a command calls this function instead.
    """
    try:
        output = sys.stdout.fileno()
    except OSError:  # In a test, standard output can be a stream without a descriptor.
        return False
    poll = select.poll()
    poll.register(output, 0)  # poll() reports errors even if no event is requested.
    return any(event & select.POLLERR for _, event in poll.poll(0))


def write_out(data: bytes) -> None:
    """Write bytes to standard output directly, without Python's buffer.

    To write its bytes, Python's buffer makes a system call, and then removes the bytes from the buffer. If Ctrl-C
    arrived between the two steps, Python would write the same bytes again when the program ends.
    """
    raw = getattr(sys.stdout.buffer, "raw", None)
    if raw is None:  # In a test, standard output can be a stream in memory.
        sys.stdout.buffer.write(data)
        return
    left = memoryview(data)
    while left:
        written = raw.write(left)
        if written is None:  # The pipe is full, and another process has made it non-blocking.
            select.select([], [raw], [])
        else:
            left = left[written:]


def prepare_streams() -> None:
    """Open a substitute for each closed standard stream, and replace standard output.

    The substitute for a closed stream is /dev/null. If a write to the new standard output fails, for example
    because the disk is full, the write raises OutputError. If standard output is a pipe that nobody reads any more,
    the write raises BrokenPipeError.
    """
    for number, stream, way in (
        (0, sys.stdin, os.O_RDONLY),
        (1, sys.stdout, os.O_RDONLY),
        (2, sys.stderr, os.O_WRONLY),
    ):
        if stream is None:
            # The descriptor `number` is closed, and all smaller descriptors are open. `os.open` returns the smallest
            # closed descriptor, so `opened` equals `number`.
            opened = os.open(os.devnull, way)
            assert opened == number
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is sys.__stdout__:  # False in a test that replaces standard output by its own stream.
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
    """Redirect standard output to /dev/null.

    A command calls this function when it can no longer write to standard output: for example, nobody reads the pipe any
    more. When the process ends, Python flushes standard output once more. Without this function, this flush would also
    fail.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
