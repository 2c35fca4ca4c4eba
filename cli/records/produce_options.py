"""The options of `hmb produce`, such as `--property` from Kafka's tools and `-K` from kcat."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import click
from click.shell_completion import CompletionItem

from hmb.defaults import CODEC_NAMES, PARTITIONER_NAMES
from hmb.protocol.enums import Acks
from hmb.units import UNITS

from ..shared.client_options import ClientConfig, client_options, producer_settings
from ..shared.completion import complete_partitions, complete_topics
from ..shared.headings import under, with_options
from ..shared.parameters import IntRange, delimiter, name_value, topic_name
from .line_formats import HeaderPair, KafkaLine, Parse, kcat_line

ACKS = ("all", *(str(acks.value) for acks in (Acks.ALL, Acks.LEADER, Acks.NONE)))
BY_KEY = -1  # With `--partition -1`, the key of each record selects the partition.

INPUT = under("What to read")
RECORD = under("What to add to each record")
SENDING = under("How to send it")


def header(text: str) -> HeaderPair:
    """Parse a header `name=value`.

    If the text has no equals sign, the whole text is the name, and the value is null.
    """
    name, equals, value = text.partition("=")
    if not name:
        raise click.BadParameter(f"{text!r} is not of the form name=value")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise click.BadParameter(f"the name of a header must be UTF-8, not {name!r}") from None
    return name, os.fsencode(value) if equals else None


def rate(text: str) -> float:
    """Parse a rate such as `100`, `100/s` or `6000/m`. Return the number of records per second."""
    match = re.fullmatch(r"(\d{1,12}(?:\.\d+)?)(?:/([smh]))?", text, re.ASCII)
    if match is None or not float(match[1]):
        raise click.BadParameter(f"{text!r} is not a rate; examples: 100, 100/s, 6000/m, 5/h")
    return float(match[1]) * 1000 / UNITS[match[2] or "s"]


def _complete_words(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    if ctx.params.get("words") or ctx.params.get("topic"):
        return [CompletionItem(incomplete, type="file")]
    return complete_topics(ctx, param, incomplete)


@dataclass(frozen=True)
class ProduceOptions:
    """The values of all options of `hmb produce`. Each field has the name of its option."""

    client: ClientConfig
    words: tuple[str, ...]
    topic: str | None
    key_delimiter: bytes | None
    record_delimiter: bytes | None
    lines: bool
    as_json: bool
    empty_is_null: bool
    properties: tuple[tuple[str, str], ...]
    count: int | None
    key: str | None
    headers: tuple[HeaderPair, ...]
    partition: int | None
    partitioner: str | None
    codec: str | None
    acks: str | None
    rate: float | None
    transaction: bool
    abort: bool
    quiet: bool

    def topic_and_files(self) -> tuple[str, tuple[str, ...]]:
        """Return the topic and the names of the files that the command line of `hmb produce` contains.

        If the option -t names the topic, all arguments are files. Otherwise the first argument is the topic.
        """
        if self.topic is not None:
            return self.topic, self.words
        if not self.words:
            raise click.UsageError("Missing argument 'TOPIC'")
        return topic_name(self.words[0]), self.words[1:]

    def in_lines(self) -> bool:
        """Return whether each line of a file is a record. If not, each whole file is the value of one record.

        The method returns True if the user has set -l (`--lines`), or an option that works only with lines. For
        example, -K names the text that separates the key from the value in a line.
        """
        of_lines = (self.lines, self.as_json, self.properties, self.key_delimiter, self.record_delimiter)
        return any(of_lines)

    def parse(self) -> Parse | None:
        """Return the function that converts a line to a key and a value, or None if each line is just a value.

        Raises click.UsageError if the user has set options that cannot be combined, for example --json and --property.
        """
        ways = {
            "--json": self.as_json,
            "--property": bool(self.properties),
            "--key-delimiter": self.key_delimiter is not None,
        }
        both = [name for name, given in ways.items() if given]
        if len(both) > 1:
            why = ": JSON contains the key" if both == ["--json", "--key-delimiter"] else ""
            raise click.UsageError(f"{' and '.join(sorted(both))} cannot be combined{why}")
        if self.empty_is_null and (self.as_json or self.properties):
            hint = "--property null.marker=" if self.properties else "JSON has null"
            raise click.UsageError(f"--null and {both[0]} cannot be combined; {hint}")
        key = None if self.key is None else os.fsencode(self.key)
        if self.as_json:
            from .record_json import json_line

            return json_line(key)
        if self.properties:
            return KafkaLine(self.properties, key)
        return kcat_line(self.key_delimiter, self.empty_is_null, key)

    def keywords(self) -> dict[str, Any]:
        """Return the keyword arguments for `hmb.Producer`.

        An option takes precedence over a setting in -X or in a file.
        """
        acks = int(self.acks) if self.acks and self.acks != "all" else self.acks
        given = {"acks": acks, "compression": self.codec, "partitioner": self.partitioner}
        keywords = dict(self.client.keywords) | {name: value for name, value in given.items() if value is not None}
        if self.transaction or self.abort:
            keywords.setdefault("transactional_id", f"hmb-produce-{uuid4()}")
        return keywords


OPTIONS: list[Callable[[Any], Any]] = [
    click.argument("words", nargs=-1, metavar="TOPIC [FILES]...", shell_complete=_complete_words),
    INPUT("-K", "--key-delimiter", type=delimiter, metavar="TEXT",
        help=r"TEXT separates key and value in a line; \t, \n, \0, \xHH are allowed. Lines without TEXT have no key."),
    INPUT("-D", "--delimiter", "record_delimiter", type=delimiter, metavar="TEXT",
        help=r"TEXT ends a record.  [default: \n]"),
    INPUT(
        "-l", "--lines", is_flag=True,
        help="Send each line of the files as a record. Without this option, each file is sent as one record.",
    ),
    INPUT(
        "-J", "--json", "as_json", is_flag=True, help="Each line is a JSON object, as `hmb consume --json` prints it."
    ),
    INPUT("-Z", "--null", "empty_is_null", is_flag=True, synonyms=["--tombstone"],
        help="Send an empty key or value as null. A record whose value is null is a tombstone."),
    INPUT("--property", "properties", synonyms=["--reader-property"], type=name_value, multiple=True,
        metavar="NAME=VALUE", help="Set a property, for example parse.key=true. The properties are those of "
        "kafka-console-producer. These are true or false: parse.key, parse.headers and ignore.error. These are texts: "
        "key.separator, headers.delimiter, headers.separator, headers.key.separator and null.marker."),
    INPUT("-c", "--count", type=IntRange(1), metavar="N", help="Stop after N records."),
    RECORD("-k", "--key", metavar="KEY", help="The key of each record that has no key in the input."),
    RECORD("-H", "--header", "headers", type=header, multiple=True, metavar="NAME=VALUE",
        help="Add a header. The option can be repeated."),
    RECORD("-p", "--partition", type=IntRange(BY_KEY), shell_complete=complete_partitions, metavar="N",
        help="Send all records to partition N. If N is -1, the key of each record selects its partition. With -p, the "
        "command ignores partitions in the input. Without -p, a line of JSON can contain the partition of its record; "
        "for all other records, the key selects the partition."),
    RECORD("--partitioner", type=click.Choice(PARTITIONER_NAMES),
        help="How a key selects a partition.  [default: murmur2, as in Kafka]"),
    RECORD("-t", "--topic", type=topic_name, shell_complete=complete_topics, metavar="TOPIC",
        help="The topic. With -t, all arguments are FILES. Without -t, the first argument is the topic."),
    SENDING("-z", "--codec", synonyms=["--compression-codec"], type=click.Choice(CODEC_NAMES),
        help="The compression codec.  [default: none]"),
    SENDING("--acks", synonyms=["--request-required-acks"], type=click.Choice(ACKS),
        help="Which replicas must store a record before the broker acknowledges it.  [default: all]"),
    SENDING(
        "--rate", type=rate, metavar="N[/s]",
        help="Send at most N records per second (N/s), minute (N/m) or hour (N/h).",
    ),
    SENDING("--transaction", is_flag=True,
        help="Send all records in one transaction. It is committed at the end, and aborted after an error or Ctrl-C."),
    SENDING("--abort", is_flag=True, help="Send all records in one transaction, and abort it at the end."),
    SENDING("-q", "--quiet", is_flag=True, help="Print neither progress nor the number of sent records."),
    client_options(producer_settings, config=("--config", "--producer-config", "--producer.config", "--command-config"),
        synonyms=("--producer-property", "--command-property")),
]  # fmt: skip


def produce_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add all options of `hmb produce` to the function that runs the command."""
    return with_options(command, OPTIONS)
