r"""`--property print.key=true`: what kafka-console-consumer prints, as its DefaultMessageFormatter does.

In this order, with key.separator (a tab) between them and line.separator (a newline) at the end::

    print.timestamp   CreateTime:1645000000123      print.headers   a:1,b:2   (or NO_HEADERS)
    print.partition   Partition:0                   print.key       the key
    print.offset      Offset:7                      print.value     the value; true if nobody says otherwise

headers.separator (,) stands between two headers, null.literal (null) for what is null.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from ..shared.arguments import delimiter
from .formats import OF_HEADER, OF_RECORD, Format, Headers, Piece
from .formats import Parser as FormatParser

if TYPE_CHECKING:
    from hmb.client import ConsumerRecord

SWITCHES = ("print.timestamp", "print.partition", "print.offset", "print.headers", "print.key", "print.value")
TEXTS = {"key.separator": b"\t", "line.separator": b"\n", "headers.separator": b",", "null.literal": b"null"}


def is_true(name: str, text: str) -> bool:
    """A switch of Kafka's console tools."""
    if text.lower() not in ("true", "false"):
        raise click.UsageError(f"--property {name}={text}: must be true or false")
    return text.lower() == "true"


def kafka_format(properties: Iterable[tuple[str, str]]) -> tuple[Format, bytes]:
    """The format that these properties make, and what to print for null."""
    switches, texts = {"print.value": True}, dict(TEXTS)
    for name, text in properties:
        if name in SWITCHES:
            switches[name] = is_true(name, text)
        elif name in texts:
            texts[name] = delimiter(text)
        else:
            raise click.UsageError(f"--property {name}: there are {', '.join((*SWITCHES, *TEXTS))}")
    headers = Headers(FormatParser("%k:%v", OF_HEADER).parse(), texts["headers.separator"], b"NO_HEADERS")
    pieces: dict[str, list[bytes | Piece | Headers]] = {
        "print.timestamp": [Piece(b"%b", _timestamp)],
        "print.partition": [b"Partition:", Piece(b"%d", OF_RECORD.numbers["p"])],
        "print.offset": [b"Offset:", Piece(b"%d", OF_RECORD.numbers["o"])],
        "print.headers": [headers],
        "print.key": [Piece(b"%b", OF_RECORD.texts["k"])],
        "print.value": [Piece(b"%b", OF_RECORD.texts["v"])],
    }
    parts: list[bytes | Piece | Headers] = []
    for name in SWITCHES:
        if switches.get(name):
            parts += [texts["key.separator"], *pieces[name]] if parts else pieces[name]
    return Format([*parts, texts["line.separator"]]), texts["null.literal"]


def _timestamp(record: "ConsumerRecord") -> bytes:
    if record.timestamp < 0:
        return b"NO_TIMESTAMP"
    return b"%s:%d" % (record.timestamp_type.label.encode(), record.timestamp)
