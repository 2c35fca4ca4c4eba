r"""Types of arguments and options: functions that convert the text of a command line to a value.

An option can have a function of this module as its type. The library `click` calls this function with the text from the
command line. The function returns the value for the command. If the text is wrong, the function raises
`click.BadParameter`. Three examples:
    topic_name("a/b")              BadParameter: 'a/b' is not a topic name ...
    partition_numbers("0,2,4-7")   (0, 2, 4, 5, 6, 7)
    delimiter(r"\t")               b"\t"
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from hmb.protocol.schema import Request

ESCAPES = {"t": b"\t", "n": b"\n", "r": b"\r", "0": b"\0", "\\": b"\\"}
ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|.?)", re.DOTALL)
NUMBERS = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


class NewPath(click.Path):
    """A path that may exist or not.

    An empty path is an error, because it usually comes from a shell variable that is not set.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value):
            self.fail("the path is empty", param, ctx)
        return super().convert(value, param, ctx)


class IntRange(click.IntRange):
    """A whole number between two limits. If a text is not a number, the error says "not a valid integer"."""

    name = "integer"


def name_value(text: str) -> tuple[str, str]:
    """Split `name=value` at the first equals sign. Raises click.BadParameter."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text!r} is not of the form name=value")
    return name, value


def servers(text: str) -> str:
    """Return the text if it is a list of addresses such as `host:port,host:port`. Raises click.BadParameter."""
    from hmb.client.metadata import parse_servers

    try:
        parse_servers(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return text


def topic_name(text: str) -> str:
    """Return the text if Kafka allows it as the name of a topic. Raises click.BadParameter.

    The topic does not have to exist.
    """
    from hmb.protocol.errors import KafkaError
    from hmb.protocol.topics import check_topic_name

    try:
        check_topic_name(text)
    except KafkaError as error:
        raise click.BadParameter(error.message) from None
    return text


def partition_numbers(text: str) -> tuple[int, ...]:
    """Parse a list of partition numbers such as `0`, `0,2` or `0,2,4-7`."""
    numbers: list[int] = []
    for part in text.split(","):
        match = NUMBERS.fullmatch(part.strip())
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise click.BadParameter(f"{text!r} is not a list of partitions; examples: 0 and 0,2,4-7")
        numbers += range(int(match[1]), int(match[2] or match[1]) + 1)
    return tuple(dict.fromkeys(numbers))


def topic_partitions(text: str) -> tuple[str, tuple[int, ...] | None]:
    """Parse `TOPIC:0,1,2` or `TOPIC`. Return the topic and its partitions; None means all partitions."""
    name, colon, numbers = text.partition(":")
    topic_name(name)
    if not colon:
        return name, None
    try:
        return name, partition_numbers(numbers)
    except click.BadParameter:
        raise click.BadParameter(f"{text!r}: write TOPIC or TOPIC:0,1,2") from None


def regular_expression(text: str) -> re.Pattern[str]:
    """Compile a regular expression that searches texts, not bytes. Raises click.BadParameter."""
    try:
        return re.compile(text)
    except re.error as error:
        raise bad_expression(text, error) from None


def bad_expression(text: str, error: re.error) -> click.BadParameter:
    """Return the exception for a wrong regular expression. Its message contains the position of the mistake."""
    position = "" if error.pos is None else f" at character {error.pos + 1}"
    return click.BadParameter(f"{text!r} is not a regular expression: {error.msg}{position}")


def delimiter(text: str) -> bytes:
    r"""Return the delimiter as bytes. The text may contain kcat's escapes: \t, \n, \r, \0, \xHH and \\."""
    return ESCAPE.sub(_unescape, os.fsencode(text))


def _unescape(match: re.Match[bytes]) -> bytes:
    escape = os.fsdecode(match[1])
    if len(escape) == 3:
        return bytes.fromhex(escape[1:])
    if escape not in ESCAPES:
        raise click.BadParameter(unknown_escape(escape))
    return ESCAPES[escape]


def unknown_escape(escape: str) -> str:
    """Return the error message for an unknown escape. `escape` is the character after the backslash."""
    return rf"'\{escape}' is not an escape; the escapes are \t, \n, \r, \0, \xHH, \\"


def api(text: str) -> type[Request]:
    """Return the request class of an API. `text` is the API's name, such as `Fetch`, or its number."""
    from hmb.protocol.messages import API_KEYS, api_name, request_class

    names = {api_name(key).lower(): key for key in API_KEYS}
    wanted = text.replace("_", "").replace("-", "").lower()
    found = int(wanted) if wanted.isdecimal() else names.get(wanted)
    if found not in API_KEYS:
        import difflib  # This import takes 1.5 ms. Only error messages need it.

        near = difflib.get_close_matches(wanted, names, 1)
        hint = f"did you mean {api_name(names[near[0]])}?" if near else "write Produce, Fetch ... or a number"
        raise click.BadParameter(f"HMB has no API {text!r}; {hint}")
    return request_class(found)


def complete_api(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of the APIs that begin with this text, in upper or lower case."""
    from hmb.protocol.messages import API_KEYS, api_name

    names = map(api_name, API_KEYS)
    return sorted(name for name in names if name.lower().startswith(incomplete.lower()))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint for a wrong name: the most similar known name.

    If no known name is similar, the hint lists all of them.
    """
    import difflib  # Only error messages need it.

    names = list(known)
    near = difflib.get_close_matches(name, names, 1)
    return f"did you mean {near[0]!r}?" if near else f"the names are {', '.join(names)}"
