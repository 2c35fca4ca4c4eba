"""The options of `hmb consume`.

Long names, such as `--group`, are from Kafka's tools. One-letter names, such as `-f`, are from kcat and rpk.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import click

from hmb.defaults import ACKNOWLEDGEMENTS, ASSIGNOR_NAMES, OFFSET_NAMES, Acknowledgement
from hmb.protocol.enums import CONSUMER_GROUP_TYPES, ISOLATION_LEVELS, GroupType

from ..shared.client_options import ClientConfig, client_options, consumer_settings
from ..shared.completion import complete_groups, complete_partitions
from ..shared.headings import under, with_options
from ..shared.parameters import IntRange, delimiter, name_value, partition_numbers, regular_expression
from ..shared.subjects import optional_topics_argument
from .filters import HeaderFilter, Search, bytes_expression, header_expression
from .formats import RecordFormat, parse_format
from .offset_grammar import Span, merge, parse_span

if TYPE_CHECKING:
    from hmb.client.offsets import Offset, Until

SPAN = under("Where to start and to stop")
GROUP = under("As a member of a group")
RECORDS = under("Which records")
OUTPUT = under("How to print them")


@dataclass(frozen=True)
class ConsumeOptions:
    """The values of all options of `hmb consume`. Each field has the name of its option."""

    client: ClientConfig
    topics: tuple[str, ...]
    pattern: re.Pattern[str] | None
    exclude: re.Pattern[str] | None
    partitions: tuple[tuple[int, ...], ...]
    from_beginning: bool
    spans: tuple[Span, ...]
    tail: int | None
    count: int | None
    to_end: bool
    timeout_ms: int | None
    no_wait: bool
    group: str | None
    group_instance_id: str | None
    group_protocol: str | None
    assignors: tuple[str, ...]
    share: str | None
    ack: str | None
    isolation_level: str | None
    filter_keys: tuple[Search, ...]
    filter_values: tuple[Search, ...]
    filter_headers: tuple[HeaderFilter, ...]
    format: RecordFormat | None
    as_json: bool
    key_delimiter: bytes | None
    record_delimiter: bytes | None
    null: bool
    properties: tuple[tuple[str, str], ...]
    verbose: bool
    quiet: bool
    unbuffered: bool

    def check(self) -> None:
        """Raise click.UsageError for options that contradict each other."""
        if not (self.topics or self.pattern):
            raise click.UsageError("Missing argument 'TOPIC': name one or more, or choose --pattern")
        if self.exclude and not self.pattern:
            raise click.UsageError("--exclude needs --pattern")
        if self.partitions and self.pattern:
            raise click.UsageError("--partition and --pattern cannot be combined")
        ways = {
            "--format": self.format is not None,
            "--json": self.as_json,
            "--property": bool(self.properties),
            "--key-delimiter": self.key_delimiter is not None,
        }
        both = [name for name, given in ways.items() if given][:2]
        if len(both) == 2:
            why = ": JSON contains the key" if both == ["--json", "--key-delimiter"] else ""
            raise click.UsageError(f"{both[0]} and {both[1]} cannot be combined{why}")
        if self.record_delimiter is not None and (self.format or self.as_json or self.properties):
            raise click.UsageError(f"--delimiter and {both[0]} cannot be combined")

        self._check_share()

    def _check_share(self) -> None:
        if self.share is None:
            if self.ack is not None:
                raise click.UsageError("--ack needs --share")
            return
        excluded = {
            "--group": self.group,
            "--partition": self.partitions,
            "--pattern": self.pattern,
            "--offset": self.spans,
            "--from-beginning": self.from_beginning,
            "--tail": self.tail,
            "--exit": self.to_end,
            "--isolation-level": self.isolation_level,
        }
        for name, value in excluded.items():
            if value:
                raise click.UsageError(f"--share and {name} cannot be combined: the broker chooses the records")

    @property
    def acknowledgement(self) -> Acknowledgement:
        """How `hmb consume --share` acknowledges each record after it has printed the record."""
        return cast("Acknowledgement", self.ack or ACKNOWLEDGEMENTS[0])

    def keywords(self) -> dict[str, Any]:
        """Return the keyword arguments for `hmb.Consumer`.

        The user can set the same value with an option, such as --group, and also with -X or in the configuration file.
        The value of the option then takes precedence. Raises click.UsageError if a setting is not valid, or if two
        options contradict each other.
        """
        start, until = self._start_and_end()
        keywords = dict(self.client.keywords)
        if (reset := keywords.get("offset", "latest")) not in OFFSET_NAMES:
            raise click.UsageError(f"auto.offset.reset={reset}: the value must be {' or '.join(OFFSET_NAMES)}")
        given = {
            "until": until,
            "offset": start,
            "partitions": sorted({number for part in self.partitions for number in part}) or None,
            "pattern": self.pattern,
            "exclude": self.exclude,
            "group": self.group,
            "group_instance_id": self.group_instance_id,
            "group_protocol": self.group_protocol,
            "isolation_level": self.isolation_level,
        }
        keywords |= {name: value for name, value in given.items() if value is not None}
        keywords["wait_for_topics"] = not self.no_wait and _can_wait(start, until)
        if self.assignors:
            is_remote = keywords.get("group_protocol") == GroupType.CONSUMER
            keywords |= {"remote_assignor": self.assignors[0]} if is_remote else {"assignors": self.assignors}
        keywords.setdefault("offset", "latest")
        self._check_group(keywords)
        return keywords

    def _start_and_end(self) -> tuple[Offset | None, Until]:
        span = merge(self.spans)
        ways = [span.start is not None or span.stored, self.from_beginning, self.tail is not None]
        if sum(ways) > 1:
            raise click.UsageError("--offset, --from-beginning and --tail cannot be combined")
        if span.until is not None and self.tail is not None:
            raise click.UsageError("--tail stops at the end, so --offset must not name another end")
        ends = self.to_end or self.tail is not None
        start, until = span.start, "end" if ends and span.until is None else span.until
        if self.tail is not None:
            start = -self.tail
        if self.from_beginning or (start is None and not span.stored and until is not None):
            start = "earliest"
        return start, until

    def _check_group(self, keywords: dict[str, Any]) -> None:
        if "group" in keywords and "partitions" in keywords:
            raise click.UsageError("--group and --partition cannot be combined: a group assigns its partitions")
        if "group" in keywords and self.to_end and isinstance(keywords.get("until"), int):
            what = "use either --exit or an end offset in --offset (such as :40), but not both"
            raise click.UsageError(f"with --group, {what}")
        if "group" not in keywords and (self.group_instance_id or self.assignors or merge(self.spans).stored):
            raise click.UsageError("--static, --assignor and `--offset stored` need --group")


def _can_wait(start: Offset | None, until: Until) -> bool:
    """Return whether `hmb consume` can wait until somebody creates a missing topic.

    After the wait, `hmb consume` prints all records of the new topic. It therefore waits only if the user wants all
    these records.

    `hmb consume` does not wait if the user has set an end. It also does not wait if the user has set the start to
    an offset, such as 12, or to a distance from the log start, such as +12.
    """
    from hmb.client.offsets import FromStart

    return until is None and not isinstance(start, FromStart) and not (isinstance(start, int) and start >= 0)


OPTIONS: list[Callable[[Any], Any]] = [
    optional_topics_argument,
    SPAN("-o", "--offset", "spans", type=parse_span, multiple=True, metavar="OFFSET", help="""
        Where to start: start (the oldest record), end (only new records), stored (the committed offset of the
        group), an offset, or @TIME. The value +12 means 12 offsets after the oldest record, and -12 means 12 offsets
        before the end.

        FROM:TO and @TIME:TIME name a start and an end. For example, 12:40 prints the offsets 12 to 39. In the
        notation of kcat, s@TIME is a start, and e@TIME is an end.

        TIME is a date (2026-02-14), a date and a time (2026-02-14T10:30:00Z), a number of ms or s since 1970, or a
        time before now. For example, @-1h starts one hour ago.  [default: end]"""),
    SPAN("--from-beginning", is_flag=True, help="Start with the oldest record."),
    SPAN("--tail", type=IntRange(1), metavar="N", help="Print the last N records of each partition, and stop."),
    SPAN(
        "-e", "--exit", "to_end", is_flag=True,
        help="Print all records from the oldest one, and stop at the end of the log.",
    ),
    SPAN("-c", "--count", synonyms=("-n", "--num", "--max-messages"), type=IntRange(1), metavar="N",
        help="Stop after N printed records."),
    SPAN("--timeout-ms", type=IntRange(1), metavar="MS", help="Stop after MS milliseconds without a record."),
    SPAN("--no-wait", is_flag=True, help="If a topic does not exist, do not wait; end with exit code 3."),
    SPAN("-p", "--partition", "partitions", type=partition_numbers, multiple=True, metavar="LIST",
        shell_complete=complete_partitions, help="Read only these partitions: 0 or 0,2,4-7."),
    GROUP("-G", "--group", metavar="NAME", shell_complete=complete_groups,
        help="Join this group: start at its committed offsets, and commit the offsets of printed records."),
    GROUP("--static", "group_instance_id", synonyms=["--group-instance-id"], metavar="ID",
        help="Join the group as the static member ID. If the command ends and starts again quickly, it gets the same "
        "partitions."),
    GROUP("--group-protocol", type=click.Choice([kind.value for kind in CONSUMER_GROUP_TYPES]),
        help="The group protocol: classic, or consumer, which KIP-848 defines."),
    GROUP("--assignor", "assignors", synonyms=["--balancer"], multiple=True, metavar="NAME",
        help="The assignor, which divides the partitions among the members. In a classic group, NAME is one of "
        f"{', '.join(ASSIGNOR_NAMES)}. With `--group-protocol consumer`, NAME is uniform or range."),
    GROUP("--share", metavar="NAME", shell_complete=complete_groups,
        help="Join this share group (KIP-932): its members share the records of each partition, as in a queue."),
    GROUP("--ack", type=click.Choice(ACKNOWLEDGEMENTS),
        help="With --share: accept, release or reject each printed record.  [default: accept]"),
    RECORDS("--pattern", synonyms=["--include", "--whitelist"], type=regular_expression, metavar="REGEX",
        help="Read all topics whose whole name matches REGEX. If such a topic is created later, the command reads it "
        "as well."),
    RECORDS("--exclude", synonyms=["--blacklist"], type=regular_expression, metavar="REGEX",
        help="With --pattern: leave out topics whose whole name matches REGEX."),
    RECORDS("--filter-key", "filter_keys", type=bytes_expression, multiple=True, metavar="REGEX",
        help="Print only records whose key contains a match of REGEX."),
    RECORDS("--filter-value", "filter_values", synonyms=["--grep"], type=bytes_expression, multiple=True,
        metavar="REGEX", help="Print only records whose value contains a match of REGEX."),
    RECORDS("--filter-header", "filter_headers", type=header_expression, multiple=True, metavar="NAME=REGEX",
        help="Print only records with a header NAME whose value contains a match of REGEX."),
    RECORDS("--isolation-level", type=click.Choice(tuple(ISOLATION_LEVELS)),
        help="read_committed leaves out records of open and aborted transactions.  [default: read_uncommitted]"),
    OUTPUT("-f", "--format", "format", type=parse_format, metavar="FORMAT", help=r"""
        Print each record in this format. Fields: %t topic, %p partition, %o offset, %k key, %v or %s value,
        %h headers, %d or %T timestamp. (In rpk, %T is the length of the topic's name.)

        Lengths in bytes: %K of the key, %S of the value. The letter %R also prints the length of the value, but as
        a 4-byte binary number. Counts: %H headers of the record, %i records printed so far.

        Braces change how a field is printed. For example, %v{hex} and %v{base64} encode the value. To print a 4-byte
        binary value as a decimal number, write %v{unpack[>I$]}. The field %o{big32} is the offset as a 4-byte binary
        number. The field %d{strftime[%F %T]} is the date and the time. With %h{ %k=%v}, each header is printed in the
        format between the braces.

        Special characters: \n, \t, \0, \xHH, %% (prints %)."""),
    OUTPUT(
        "-J", "--json", "as_json", is_flag=True,
        help="Print each record as a line of JSON, which `hmb produce --json` can read.",
    ),
    OUTPUT("-K", "--key-delimiter", type=delimiter, metavar="TEXT",
        help=r"Print the key and TEXT before each value. TEXT may contain \t, \n, \0, \xHH."),
    OUTPUT("-D", "--delimiter", "record_delimiter", type=delimiter, metavar="TEXT",
        help=r"Print TEXT after each record.  [default: \n]"),
    OUTPUT("-Z", "--null", is_flag=True, help="Print a null key or value as NULL, not as an empty text."),
    OUTPUT("--property", "properties", synonyms=["--formatter-property"], type=name_value, multiple=True,
        metavar="NAME=VALUE",
        help="Set a property, for example print.key=true. The properties are those of kafka-console-consumer. These "
        "are true or false: print.key, print.headers, print.timestamp, print.partition, print.offset and print.value. "
        "These are texts: key.separator, headers.separator, line.separator and null.literal."),
    OUTPUT("-v", "--verbose", is_flag=True,
        help="Print a note at the end of each partition, even if standard error is not a terminal."),
    OUTPUT("-q", "--quiet", is_flag=True, help="Print no note at the end of a partition."),
    OUTPUT(
        "-u", "--unbuffered", is_flag=True, hidden=True,
        help="kcat has this option. It has no effect here, because `hmb consume` never buffers the output.",
    ),
    client_options(consumer_settings, config=("--config", "--consumer-config", "--consumer.config", "--command-config"),
        synonyms=("--consumer-property", "--command-property")),
]  # fmt: skip


def consume_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of `hmb consume` to the function of a command.

    When the command runs, the function receives one keyword argument for each field of `ConsumeOptions`. It can
    create a `ConsumeOptions` object from these arguments.
    """
    return with_options(command, OPTIONS)
