"""Report an error: print one line on standard error, and choose the exit code of the process.

A script tests the exit code, and a person reads the line on standard error. The line says what is wrong, where, and
what to do. These are the exit codes:
    0    no error
    1    any other error
    2    usage: an option or an argument is wrong
    3    not found: a topic, a group, a broker, a file
    4    unreachable: no broker answered in time
    5    damage: a file or a record is damaged
    130  interrupted by Ctrl-C

`report` prints one line for an error that a user can cause or repair. For any other exception, Python prints a
traceback.

An unexpected exception can come from HMB, or from the user's own code that `hmb hailstorm` runs. `report`
therefore adds a note: "If your own code has not raised this error, this is a bug in HMB". An OSError gets no
note, because its cause can be outside of HMB, for example a full disk.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import click

from hmb.defaults import BUG

from .streams import OutputError, mute_stdout

if TYPE_CHECKING:
    from hmb.protocol.errors import KafkaError

ERROR, USAGE, NOT_FOUND, UNREACHABLE, DAMAGE, INTERRUPTED = 1, 2, 3, 4, 5, 130


class CliError(Exception):
    """An error that the code of a command detects. `code` is the exit code."""

    def __init__(self, message: str, code: int = ERROR) -> None:
        super().__init__(message)
        self.code = code


def report(error: Exception) -> int | None:
    """Print one line for an error that a user can cause or repair, and return the exit code.

    For any other error, return None. The caller then raises the error again, so that Python prints a traceback.
    Below the traceback, Python prints a note that `report` has added: "If your own code has not raised this error,
    this is a bug in HMB".

    An OSError gets no note, because its cause can be outside HMB, for example a full disk.
    """
    known = _explain(error)
    if known is None:
        if not isinstance(error, OSError):  # An OSError can have a cause outside of HMB, for example a full disk.
            error.add_note(f"If your own code has not raised this error, {BUG}.")
        return None
    message, code = known
    with contextlib.suppress(OSError):  # If standard error is closed, only the exit code shows the error.
        click.echo(f"hmb: {message}", err=True)
    return code


def _explain(error: Exception) -> tuple[str, int] | None:
    from hmb.protocol.errors import KafkaError

    match error:
        case CliError():
            return str(error), error.code
        case click.ClickException():
            return _usage(error), error.exit_code
        case OutputError():
            mute_stdout()
            return f"cannot write to standard output: {error.strerror}", ERROR
        case KafkaError():
            return _kafka_error(error)
        case ConnectionError():
            return f"{error}; start a broker with `hmb broker`, or name another address with -b", UNREACHABLE
        case TimeoutError():
            return str(error), UNREACHABLE
        case OSError() if error.filename is not None:
            code = NOT_FOUND if isinstance(error, FileNotFoundError) else ERROR
            return f"{os.fsdecode(error.filename)}: {error.strerror}", code
    return None


def _usage(error: click.ClickException) -> str:
    """Return click's message as one line that ends with a hint, such as (see `hmb topics --help`)."""
    message = " ".join(error.format_message().split()).removesuffix(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{message} (see `{context.command_path} --help`)" if context else message


def _kafka_error(error: KafkaError) -> tuple[str, int]:
    from hmb.protocol.errors import ErrorCode

    if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return f"{error.message}; `hmb topics list` and `hmb topics describe` show what exists", NOT_FOUND
    if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
        return f"{error.message}; `hmb groups list` shows what exists", NOT_FOUND
    codes = {
        ErrorCode.BROKER_NOT_AVAILABLE: NOT_FOUND,
        ErrorCode.CORRUPT_MESSAGE: DAMAGE,
        ErrorCode.REQUEST_TIMED_OUT: UNREACHABLE,
    }
    return f"{error.message} ({error.code.name})", codes.get(error.code, ERROR)
