r"""How a line becomes a record: kcat's delimiters, or the properties of kafka-console-producer.

    kcat        -K TEXT: a line is key, TEXT, value; one without TEXT has no key. -Z: what is empty is null
    Kafka       parse.key=true: key, key.separator (a tab), value
                parse.headers=true: a:1,b:2 and headers.delimiter (a tab) before that; between two headers stands
                headers.separator (,), between name and value headers.key.separator (:)
                null.marker: a key, a value, a header's value or all headers that are this text are null
                ignore.error=true: a line without its separators is all value; without it, it is an error

Both end in a `Parse`: from a line to key, value, headers. Where a line is the value as it is, there is none.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import click

from ..shared.arguments import delimiter
from .kafka_format import is_true

Header = tuple[str, bytes | None]
SWITCHES = ("parse.key", "parse.headers", "ignore.error")
TEXTS = {
    "key.separator": b"\t",
    "headers.delimiter": b"\t",
    "headers.separator": b",",
    "headers.key.separator": b":",
    "null.marker": None,
}


class Record(NamedTuple):
    """What a line says of its record; what it does not say is left to the options and to the producer."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    timestamp: int | None = None
    partition: int | None = None


Parse = Callable[[bytes], Record]


def kcat_line(key_delimiter: bytes | None, empty_is_null: bool, key: bytes | None) -> Parse | None:
    """The parser for -K, -Z and -k; None if lines are values as they are."""
    if not key_delimiter and not empty_is_null and key is None:
        return None

    def parse(line: bytes) -> Record:
        found = b""
        own_key, value = key, line
        if key_delimiter:
            before, found, rest = line.partition(key_delimiter)
            if found:
                own_key, value = before, rest
        if empty_is_null:
            return Record(own_key or None, value or None)
        return Record(own_key, value)

    return parse


class KafkaLine:
    """The parser for kafka-console-producer's properties; ValueError says what is wrong with a line."""

    def __init__(self, properties: Iterable[tuple[str, str]], key: bytes | None) -> None:
        self._key = key
        self._switches, self._texts = dict.fromkeys(SWITCHES, False), dict(TEXTS)
        for name, text in properties:
            if name in SWITCHES:
                self._switches[name] = is_true(name, text)
            elif name in TEXTS:
                self._texts[name] = delimiter(text)
                if not text and name != "null.marker":
                    raise click.UsageError(f"--property {name}: it is empty")
            else:
                raise click.UsageError(f"--property {name}: there are {', '.join((*SWITCHES, *TEXTS))}")

    def __call__(self, line: bytes) -> Record:
        headers: tuple[Header, ...] = ()
        key, rest = self._key, line
        if self._switches["parse.headers"]:
            before, rest = self._cut(rest, "headers.delimiter")
            if before and before != self._texts["null.marker"]:
                headers = tuple(map(self._header, before.split(self._texts["headers.separator"])))
        if self._switches["parse.key"]:
            before, rest = self._cut(rest, "key.separator")
            key = key if before is None else self._null(before)
        return Record(key, self._null(rest), headers)

    def _header(self, pair: bytes) -> Header:
        name, value = self._cut(pair, "headers.key.separator")
        return (_name(pair), None) if name is None else (_name(name), self._null(value))

    def _null(self, text: bytes) -> bytes | None:
        return None if text == self._texts["null.marker"] else text

    def _cut(self, text: bytes, what: str) -> tuple[bytes | None, bytes]:
        """What stands before a separator and what behind it; None and all where it is missing and may be."""
        separator = self._texts[what] or b""
        before, found, rest = text.partition(separator)
        if found:
            return before, rest
        if self._switches["ignore.error"]:
            return None, text
        raise ValueError(f"no {what} ({separator.decode(errors='backslashreplace')!r}) in it")


def _name(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise ValueError(f"the name of a header is not UTF-8: {text!r}") from None


def json_line(key: bytes | None) -> Parse:
    """The parser for --json; `key` is for lines that have none."""
    from .record_json import from_json

    def parse(line: bytes) -> Record:
        own_key, value, headers, timestamp, partition = from_json(line)
        return Record(key if own_key is None else own_key, value, tuple(headers), timestamp, partition)

    return parse
