"""The options of `hmb produce`, under their headings: Kafka's names, the letters of kcat."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import click
from click.shell_completion import CompletionItem

from hmb.client.producing.settings import PRODUCER

from ..completion import complete_partitions, complete_topics
from ..shared.arguments import delimiter, topic_name
from ..shared.client_config import client_keywords, config_option, settings_option
from ..shared.common import bootstrap_option, name_value
from ..shared.option_groups import under
from .line_formats import Header, KafkaLine, Parse, json_line, kcat_line

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = ("all", "-1", "1", "0")
PARTITIONERS = ("murmur2", "hash", "random")
SECONDS = {None: 1, "s": 1, "m": 60, "h": 3600}

INPUT = under("What is read")
RECORD = under("What is added to each record")
HOW = under("How it is sent")


def header(text: str) -> Header:
    """The type of an option: name=value, or a name alone, whose value is null."""
    name, equals, value = text.partition("=")
    if not name:
        raise click.BadParameter(f"{text!r} is not of the form name=value")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise click.BadParameter(f"the name of a header is UTF-8, not {name!r}") from None
    return name, os.fsencode(value) if equals else None


def rate(text: str) -> float:
    """The type of an option: 100, 100/s, 6000/m; records a second."""
    match = re.fullmatch(r"(\d{1,12}(?:\.\d+)?)(?:/([smh]))?", text, re.ASCII)
    if match is None or not float(match[1]):
        raise click.BadParameter(f"{text!r} is no rate, as 100, 100/s, 6000/m or 5/h are")
    return float(match[1]) / SECONDS[match[2]]


def _complete_words(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    if ctx.params.get("words") or ctx.params.get("topic"):
        return [CompletionItem(incomplete, type="file")]
    return complete_topics(ctx, param, incomplete)


@dataclass(frozen=True)
class Options:
    """What was asked for; the names are those of the options below."""

    words: tuple[str, ...]
    topic: str | None
    servers: str
    key_delimiter: bytes | None
    record_delimiter: bytes | None
    lines: bool
    as_json: bool
    empty_is_null: bool
    properties: tuple[tuple[str, str], ...]
    count: int | None
    key: str | None
    headers: tuple[Header, ...]
    partition: int | None
    partitioner: str | None
    codec: str | None
    acks: str | None
    rate: float | None
    transaction: bool
    abort: bool
    quiet: bool
    settings: tuple[tuple[str, str], ...]
    config: str | None

    def topic_and_files(self) -> tuple[str, tuple[str, ...]]:
        """The first word is the topic, unless -t names it."""
        if self.topic is not None:
            return self.topic, self.words
        if not self.words:
            raise click.UsageError("Missing argument 'TOPIC'.")
        return topic_name(self.words[0]), self.words[1:]

    def in_lines(self) -> bool:
        """Whether a file has a record a line; all that speaks of lines says so, too."""
        of_lines = (self.lines, self.as_json, self.properties, self.key_delimiter, self.record_delimiter)
        return any(of_lines)

    def parse(self) -> Parse | None:
        """From a line to a record; None if it is its value."""
        ways = {
            "--json": self.as_json,
            "--property": bool(self.properties),
            "--key-delimiter": self.key_delimiter is not None,
        }
        both = [name for name, given in ways.items() if given]
        if len(both) > 1:
            why = ": JSON has the key in it" if both == ["--json", "--key-delimiter"] else ""
            raise click.UsageError(f"{' and '.join(sorted(both))} exclude each other{why}")
        if self.empty_is_null and (self.as_json or self.properties):
            hint = "--property null.marker=" if self.properties else "JSON has null"
            raise click.UsageError(f"--null and {both[0]} exclude each other; {hint}")
        key = None if self.key is None else os.fsencode(self.key)
        if self.as_json:
            return json_line(key)
        if self.properties:
            return KafkaLine(self.properties, key)
        return kcat_line(self.key_delimiter, self.empty_is_null, key)

    def keywords(self) -> dict[str, Any]:
        """For `hmb.Producer`: settings, and what options say, which wins."""
        keywords = client_keywords(PRODUCER, self.config, self.settings)
        acks = {"-1": -1, "1": 1, "0": 0}.get(self.acks, self.acks) if self.acks else None
        given = {"acks": acks, "compression": self.codec, "partitioner": self.partitioner}
        keywords |= {name: value for name, value in given.items() if value is not None}
        if self.transaction or self.abort:
            keywords.setdefault("transactional_id", f"hmb-produce-{uuid4()}")
        return keywords


OPTIONS: list[Callable[[Any], Any]] = [
    click.argument("words", nargs=-1, metavar="TOPIC [FILES]...", shell_complete=_complete_words),
    INPUT("-K", "--key-delimiter", type=delimiter, metavar="TEXT",
        help=r"Each line is key, TEXT (\t, \n, \0, \xHH too), value; without TEXT: no key."),
    INPUT("-D", "--delimiter", "record_delimiter", type=delimiter, metavar="TEXT",
        help=r"What ends a record, in place of a newline."),
    INPUT("-l", "--lines", is_flag=True, help="FILES have a record a line; without it a file is one value."),
    INPUT("-J", "--json", "as_json", is_flag=True, help="Lines are JSON, as `hmb consume --json` prints them."),
    INPUT("-Z", "--null", "empty_is_null", is_flag=True, synonyms=["--tombstone"],
        help="An empty value is null, a tombstone; an empty key is null, too."),
    INPUT("--property", "properties", synonyms=["--reader-property"], type=name_value, multiple=True,
        metavar="NAME=VALUE", help="As kafka-console-producer: parse.key=true, key.separator, parse.headers, "
        "headers.delimiter, headers.separator, headers.key.separator, null.marker, ignore.error."),
    INPUT("-c", "--count", type=click.IntRange(1), metavar="N", help="Stop after so many records."),
    RECORD("-k", "--key", metavar="KEY", help="The key of records that have none of their own."),
    RECORD("-H", "--header", "headers", type=header, multiple=True, metavar="NAME=VALUE", help="A header more."),
    RECORD("-p", "--partition", type=click.IntRange(-1), shell_complete=complete_partitions, metavar="N",
        help="Send all to this partition.  [default: by key]"),
    RECORD("--partitioner", type=click.Choice(PARTITIONERS),
        help="How a key leads to a partition.  [default: murmur2, as in Kafka]"),
    RECORD("-t", "--topic", type=topic_name, shell_complete=complete_topics, metavar="TOPIC",
        help="The topic; all arguments are FILES then."),
    HOW("-z", "--codec", synonyms=["--compression-codec"], type=click.Choice(CODECS),
        help="Compress with this.  [default: none]"),
    HOW("--acks", synonyms=["--request-required-acks"], type=click.Choice(ACKS),
        help="Who must have a record.  [default: all]"),
    HOW("--rate", type=rate, metavar="N[/s]", help="At most so many records a second; also N/m, N/h."),
    HOW("--transaction", is_flag=True,
        help="All in one transaction, which is committed at the end; at an error or Ctrl-C it is aborted."),
    HOW("--abort", is_flag=True, help="As --transaction, but abort it at the end."),
    HOW("-q", "--quiet", is_flag=True, help="Do not say how many records were sent, nor how far it is."),
    bootstrap_option,
    settings_option(PRODUCER, "--producer-property", "--command-property"),
    config_option("--producer-config", "--producer.config", "--command-config"),
]  # fmt: skip


def produce_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The decorator that gives a command all of them."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command
