"""Types of arguments that the commands share: names of topics, and delimiters with escapes."""

import os
import re

import click

from ..completion import complete_topics

ESCAPES = {"t": b"\t", "n": b"\n", "r": b"\r", "0": b"\0", "\\": b"\\"}
ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|.?)", re.DOTALL)


def topic_name(text: str) -> str:
    """A topic's name, as it is on the wire; whether there is such a topic is another question."""
    from hmb.protocol.errors import KafkaError
    from hmb.protocol.topics import check_topic_name

    try:
        check_topic_name(text)
    except KafkaError as error:
        raise click.BadParameter(error.message) from None
    return text


def delimiter(text: str) -> bytes:
    r"""What stands between key and value: \t, \n, \r, \0, \xHH and \\ as kcat understands them, all else as it is."""
    return ESCAPE.sub(_unescape, os.fsencode(text))


def _unescape(match: "re.Match[bytes]") -> bytes:
    escape = os.fsdecode(match[1])
    if len(escape) == 3:
        return bytes.fromhex(escape[1:])
    if escape not in ESCAPES:
        raise click.BadParameter(rf"'\{escape}' is none of: \t, \n, \r, \0, \xHH, \\")
    return ESCAPES[escape]


topic_argument = click.argument("topic", type=topic_name, shell_complete=complete_topics)
