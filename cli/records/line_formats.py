"""Convert a line of input to a record, with kcat's options or with the properties of kafka-console-producer.

These options of kcat, and these properties of kafka-console-producer, determine how a line is divided into a
key, a value and headers:
    kcat    -K TEXT         The line contains a key, then TEXT, then a value. A line without TEXT has no key.
            -Z              An empty key or an empty value is null.
    Kafka   parse.key       The line contains a key, then key.separator (by default a tab), then a value.
            parse.headers   The line begins with headers such as a:1,b:2, followed by headers.delimiter (by
                            default a tab). headers.separator (a comma) separates two headers.
                            headers.key.separator (a colon) separates the name of a header from its value.
            null.marker     A key, a value or a header's value is null if it equals this text. If the text
                            before headers.delimiter equals null.marker, the line has no headers.
            ignore.error    With ignore.error, a line without key.separator has no key, and a line without
                            headers.delimiter has no headers. Without ignore.error, such a line is an error.

A parser (`Parse`) converts a line of input to a `LineRecord`. If the user sets none of the options -K, -Z, -k,
--property and --json, each whole line is the value of a record. `hmb produce` then needs no parser, and the
function `kcat_line` returns None. The module `record_json` contains the parser for JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import click

from ..shared.parameters import delimiter
from .kafka_format import is_true

SWITCHES = ("parse.key", "parse.headers", "ignore.error")
TEXTS = {
    "key.separator": b"\t",
    "headers.delimiter": b"\t",
    "headers.separator": b",",
    "headers.key.separator": b":",
    "null.marker": None,
}

HeaderPair = tuple[str, bytes | None]


class LineRecord(NamedTuple):
    """The parts of a record that come from a line of input.

    The command's options set the other parts, such as the topic.
    """

    key: bytes | None
    value: bytes | None
    headers: tuple[HeaderPair, ...] = ()
    timestamp: int | None = None  # ms since 1970
    partition: int | None = None


Parse = Callable[[bytes], LineRecord]


def kcat_line(key_delimiter: bytes | None, empty_is_null: bool, key: bytes | None) -> Parse | None:
    """Return a parser for kcat's options -K, -Z and -k, or None if the user has set none of them.

    - `key_delimiter` (-K): the text between the key and the value in a line.
    - `empty_is_null` (-Z): if it is true, the parser replaces an empty key or value by null.
    - `key` (-k): the key of the record if the line does not contain a key.

    Without a parser, each whole line is the value of a record.
    """
    if not key_delimiter and not empty_is_null and key is None:
        return None

    def parse(line: bytes) -> LineRecord:
        found = b""
        own_key, value = key, line
        if key_delimiter:
            before, found, rest = line.partition(key_delimiter)
            if found:
                own_key, value = before, rest
        if empty_is_null:
            return LineRecord(own_key or None, value or None)
        return LineRecord(own_key, value)

    return parse


class KafkaLine:
    """Parses lines as kafka-console-producer does, with properties such as parse.key.

    Raises ValueError if a line lacks a separator, or if the name of a header is not UTF-8.
    """

    def __init__(self, properties: Iterable[tuple[str, str]], key: bytes | None) -> None:
        self._key = key
        self._switches, self._texts = dict.fromkeys(SWITCHES, False), dict(TEXTS)
        for name, text in properties:
            if name in SWITCHES:
                self._switches[name] = is_true(name, text)
            elif name in TEXTS:
                self._texts[name] = delimiter(text)
                if not text and name != "null.marker":
                    raise click.UsageError(f"--property {name}: the value is empty")
            else:
                known = ", ".join((*SWITCHES, *TEXTS))
                raise click.UsageError(f"--property {name}: unknown name; the known names are {known}")

    def __call__(self, line: bytes) -> LineRecord:
        headers: tuple[HeaderPair, ...] = ()
        key, rest = self._key, line
        if self._switches["parse.headers"]:
            before, rest = self._cut(rest, "headers.delimiter")
            if before and before != self._texts["null.marker"]:
                headers = tuple(map(self._header, before.split(self._texts["headers.separator"])))
        if self._switches["parse.key"]:
            before, rest = self._cut(rest, "key.separator")
            key = key if before is None else self._or_null(before)
        return LineRecord(key, self._or_null(rest), headers)

    def _header(self, pair: bytes) -> HeaderPair:
        name, value = self._cut(pair, "headers.key.separator")
        return (_name(pair), None) if name is None else (_name(name), self._or_null(value))

    def _or_null(self, text: bytes) -> bytes | None:
        return None if text == self._texts["null.marker"] else text

    def _cut(self, text: bytes, name: str) -> tuple[bytes | None, bytes]:
        """Split a text at a separator, and return the two parts.

        For example, if `name` is "key.separator", the separator is the value of the property key.separator. If the text
        does not contain the separator, raise ValueError. But if the property ignore.error is true, return None and the
        whole text.
        """
        separator = self._texts[name] or b""
        before, found, rest = text.partition(separator)
        if found:
            return before, rest
        if self._switches["ignore.error"]:
            return None, text
        raise ValueError(f"the separator {separator.decode(errors='backslashreplace')!r} ({name}) is missing")


def _name(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise ValueError(f"the name of a header is not UTF-8: {text!r}") from None
