"""The option `--property`: print records as kafka-console-consumer does, with its DefaultMessageFormatter.

Properties select the parts of a record that are printed. For example, `print.key=true` prints the key. The
selected parts are printed in the order of the list below. The text of key.separator (a tab by default) is
printed between two parts, and the text of line.separator (a newline by default) after each record:
    print.timestamp   CreateTime:1645000000123
    print.partition   Partition:0
    print.offset      Offset:7
    print.headers     a:1,b:2   (or NO_HEADERS)
    print.key         the key
    print.value       the value; printed by default

The text of headers.separator (by default a comma) is printed between two headers. The text of null.literal (by default
`null`) is printed in place of a null key or value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from ..shared.parameters import delimiter
from .formats import OF_HEADER, OF_RECORD, FormatParser, HeaderPiece, Piece, RecordFormat

if TYPE_CHECKING:
    from hmb.client import ConsumerRecord

SWITCHES = ("print.timestamp", "print.partition", "print.offset", "print.headers", "print.key", "print.value")
TEXTS = {"key.separator": b"\t", "line.separator": b"\n", "headers.separator": b",", "null.literal": b"null"}


def is_true(name: str, text: str) -> bool:
    """Return whether the value of a property is `true`.

    Raises click.UsageError if the value is neither `true` nor `false`.
    """
    if text.lower() not in ("true", "false"):
        raise click.UsageError(f"--property {name}={text}: the value must be true or false")
    return text.lower() == "true"


def kafka_format(properties: Iterable[tuple[str, str]]) -> tuple[RecordFormat, bytes]:
    """Convert properties of kafka-console-consumer to a format.

    Return the format, and the text for a null key or value.
    """
    switches, texts = {"print.value": True}, dict(TEXTS)
    for name, text in properties:
        if name in SWITCHES:
            switches[name] = is_true(name, text)
        elif name in texts:
            texts[name] = delimiter(text)
        else:
            known = ", ".join((*SWITCHES, *TEXTS))
            raise click.UsageError(f"--property {name}: unknown name; the known names are {known}")
    headers = HeaderPiece(FormatParser("%k:%v", OF_HEADER).parse(), texts["headers.separator"], b"NO_HEADERS")
    pieces: dict[str, list[bytes | Piece | HeaderPiece]] = {
        "print.timestamp": [Piece(b"%b", _timestamp)],
        "print.partition": [b"Partition:", Piece(b"%d", OF_RECORD.numbers["p"])],
        "print.offset": [b"Offset:", Piece(b"%d", OF_RECORD.numbers["o"])],
        "print.headers": [headers],
        "print.key": [Piece(b"%b", OF_RECORD.texts["k"])],
        "print.value": [Piece(b"%b", OF_RECORD.texts["v"])],
    }
    parts: list[bytes | Piece | HeaderPiece] = []
    for name in SWITCHES:
        if switches.get(name):
            parts += [texts["key.separator"], *pieces[name]] if parts else pieces[name]
    return RecordFormat([*parts, texts["line.separator"]]), texts["null.literal"]


def _timestamp(record: ConsumerRecord) -> bytes:
    if record.timestamp < 0:
        return b"NO_TIMESTAMP"
    return b"%s:%d" % (record.timestamp_type.label.encode(), record.timestamp)
