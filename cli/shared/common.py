"""What all commands share: exit codes, one line for a mistake, options, and JSON for a record.

Exit codes: 0 fine, 1 error, 2 usage, 3 not found, 4 unreachable or timed out, 5 damage found, 130 interrupted. Data
goes to standard output, all else to standard error. A mistake of the user or of the world gets one line, `hmb: what
and where; what to do`. Any other exception is a bug, and shows its traceback.
"""

import contextlib
import difflib
import json
import os
from typing import TYPE_CHECKING, Any

import click

from hmb.defaults import DEFAULT_SERVER

from .streams import OutputError, mute_stdout

if TYPE_CHECKING:
    from hmb.protocol.schema import Request

ERROR, USAGE, NOT_FOUND, UNREACHABLE, DAMAGE = 1, 2, 3, 4, 5


class CliError(Exception):
    """A mistake that a command found by itself."""

    def __init__(self, message: str, code: int = ERROR) -> None:
        super().__init__(message)
        self.code = code


def report(error: Exception) -> int | None:
    """Print the line for an error and give its exit code; None for what is not a user's to mend."""
    known = _explain(error)
    if known is None:
        return None
    message, code = known
    with contextlib.suppress(OSError):  # what cannot be said is told by the exit code
        click.echo(f"hmb: {message}", err=True)
    return code


def _explain(error: Exception) -> tuple[str, int] | None:
    from hmb.protocol.errors import ErrorCode, KafkaError

    if isinstance(error, CliError):
        return str(error), error.code
    if isinstance(error, OutputError):
        mute_stdout()
        return f"cannot write to standard output: {error.strerror}", ERROR
    if isinstance(error, KafkaError):
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return f"{error.message}; `hmb topics list` and `hmb topics describe` show what there is", NOT_FOUND
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return f"{error.message}; `hmb groups list` shows what there is", NOT_FOUND
        code = {ErrorCode.CORRUPT_MESSAGE: DAMAGE, ErrorCode.REQUEST_TIMED_OUT: UNREACHABLE}.get(error.code, ERROR)
        return f"{error.message} ({error.code.name})", code
    if isinstance(error, ConnectionError):
        return f"{error}; start a broker with `hmb broker`, or name another address with -b", UNREACHABLE
    if isinstance(error, TimeoutError):
        return str(error), UNREACHABLE
    if isinstance(error, OSError) and error.filename is not None:
        code = NOT_FOUND if isinstance(error, FileNotFoundError) else ERROR
        return f"{os.fsdecode(error.filename)}: {error.strerror}", code
    return None


class NewPath(click.Path):
    """The type of an option: a path, there or not; an empty one is a variable that was not set, not `.`"""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value):
            self.fail("the path is empty", param, ctx)
        return super().convert(value, param, ctx)


class IntRange(click.IntRange):
    """The type of an option: a whole number, which "is not a valid integer" if it is none."""

    name = "integer"


def servers(text: str) -> str:
    """The type of an option: host:port,host:port"""
    from hmb.client.metadata import parse_servers

    try:
        parse_servers(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return text


def api(text: str) -> "type[Request]":
    """The type of an option: an API, by its name or its number; the class of its request."""
    from hmb.protocol.messages import API_KEYS, api_name, request_class

    names = {api_name(key).lower(): key for key in API_KEYS}
    wanted = text.replace("_", "").replace("-", "").lower()
    found = int(wanted) if wanted.isdecimal() else names.get(wanted)
    if found not in API_KEYS:
        near = difflib.get_close_matches(wanted, names, 1)
        hint = f"did you mean {api_name(names[near[0]])}?" if near else "write Produce, Fetch ... or a number"
        raise click.BadParameter(f"{text!r} is no API that hmb knows; {hint}")
    return request_class(found)


def complete_api(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """For `shell_complete=`: APIs whose names begin as the word does, in small letters, too."""
    from hmb.protocol.messages import API_KEYS, api_name

    names = map(api_name, API_KEYS)
    return sorted(name for name in names if name.lower().startswith(incomplete.lower()))


def name_value(text: str) -> tuple[str, str]:
    """The type of an option: name=value"""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text!r} is not of the form name=value")
    return name, value


bootstrap_option = click.option(
    "-b",
    "--bootstrap-server",
    "servers",
    type=servers,
    metavar="HOST:PORT",
    default=DEFAULT_SERVER,
    show_default=True,
    help="A broker to start from, or several with commas.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def print_json(value: object) -> None:
    """One JSON document a line."""
    click.echo(json.dumps(value, ensure_ascii=False))
