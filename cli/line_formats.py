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

from .arguments import delimiter
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


def kafka_line(properties: Iterable[tuple[str, str]], key: bytes | None) -> Parse:
    """The parser for kafka-console-producer's properties; ValueError says what is wrong with a line."""
    switches, texts = dict.fromkeys(SWITCHES, False), dict(TEXTS)
    for name, text in properties:
        if name in SWITCHES:
            switches[name] = is_true(name, text)
        elif name in texts:
            texts[name] = delimiter(text)
            if not texts[name] and name != "null.marker":
                raise click.UsageError(f"--property {name}: it is empty")
        else:
            raise click.UsageError(f"--property {name}: there are {', '.join((*SWITCHES, *TEXTS))}")
    marker, lenient = texts["null.marker"], switches["ignore.error"]

    def null(text: bytes) -> bytes | None:
        return None if text == marker else text

    def cut(line: bytes, what: str) -> tuple[bytes | None, bytes]:
        separator = texts[what] or b""
        before, found, rest = line.partition(separator)
        if found:
            return before, rest
        if lenient:
            return None, line
        raise ValueError(f"no {what} ({separator.decode(errors='backslashreplace')!r}) in it")

    def parse_headers(text: bytes) -> Iterable[Header]:
        for pair in text.split(texts["headers.separator"]):
            name, value = cut(pair, "headers.key.separator")
            yield (_name(pair), None) if name is None else (_name(name), null(value))

    def parse(line: bytes) -> Record:
        headers: tuple[Header, ...] = ()
        own_key: bytes | None = key
        rest = line
        if switches["parse.headers"]:
            before, rest = cut(rest, "headers.delimiter")
            if before and before != marker:
                headers = tuple(parse_headers(before))
        if switches["parse.key"]:
            before, rest = cut(rest, "key.separator")
            own_key = key if before is None else null(before)
        return Record(own_key, null(rest), headers)

    return parse


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
