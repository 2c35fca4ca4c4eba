"""The options of `hmb consume`, under their headings: Kafka's names, the letters of kcat and rpk."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from hmb.client.consuming.settings import CONSUMER

from ..completion import complete_groups, complete_partitions, complete_topics
from ..shared.arguments import delimiter, topic_name
from ..shared.client_config import client_keywords, config_option, settings_option
from ..shared.common import bootstrap_option, name_value
from ..shared.option_groups import under
from .filters import HeaderFilter, Search, header_search, search
from .formats import Format, parse_format
from .offset_grammar import Span, merge, parse_span

if TYPE_CHECKING:
    from hmb.client.offsets import Offset, Until

ISOLATION_LEVELS = ("read_uncommitted", "read_committed")
RESETS = ("earliest", "latest")
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")

FROM = under("Where from, how far")
GROUP = under("As a member of a group")
WHICH = under("Which records")
HOW = under("How they are printed")


def partitions(text: str) -> tuple[int, ...]:
    """The type of an option: 0,2,4-7"""
    numbers: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part.strip(), re.ASCII)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise click.BadParameter(f"{text!r} is no list of partitions, as 0 or 0,2,4-7 are")
        numbers += range(int(match[1]), int(match[2] or match[1]) + 1)
    return tuple(numbers)


def regular_expression(text: str) -> str:
    """The type of an option: a regular expression for names of topics."""
    search(text)
    return text


@dataclass(frozen=True)
class Options:
    """What was asked for; the names are those of the options below."""

    topics: tuple[str, ...]
    more_topics: tuple[str, ...]
    servers: str
    pattern: str | None
    exclude: str | None
    partitions: tuple[tuple[int, ...], ...]
    from_beginning: bool
    spans: tuple[Span, ...]
    tail: int | None
    count: int | None
    to_end: bool
    timeout_ms: int | None
    group: str | None
    group_instance_id: str | None
    group_protocol: str | None
    assignors: tuple[str, ...]
    isolation_level: str | None
    filter_keys: tuple[Search, ...]
    filter_values: tuple[Search, ...]
    filter_headers: tuple[HeaderFilter, ...]
    format: Format | None
    as_json: bool
    key_delimiter: bytes | None
    record_delimiter: bytes | None
    null: bool
    properties: tuple[tuple[str, str], ...]
    verbose: bool
    quiet: bool
    unbuffered: bool
    settings: tuple[tuple[str, str], ...]
    config: str | None

    def span(self) -> "tuple[Offset | None, Until]":
        """Where to start and where to stop; usage errors for what excludes each other."""
        span = merge(self.spans)
        ways = [span.start is not None or span.stored, self.from_beginning, self.tail is not None]
        if sum(ways) > 1:
            raise click.UsageError("--offset, --from-beginning and --tail exclude each other")
        if span.until is not None and (self.to_end or self.tail is not None):
            raise click.UsageError("--offset says already where to stop; --exit and --tail would say it again")
        start, until = span.start, "end" if self.to_end or self.tail is not None else span.until
        if self.tail is not None:
            start = -self.tail
        if self.from_beginning or (start is None and not span.stored and until is not None):
            start = "earliest"
        return start, until

    def check(self) -> None:
        """Usage errors for what makes no sense together."""
        if not (self.topics or self.more_topics or self.pattern):
            raise click.UsageError("Missing argument 'TOPIC': name one or more, or give --pattern.")
        if self.exclude and not self.pattern:
            raise click.UsageError("--exclude goes with --pattern")
        if self.partitions and self.pattern:
            raise click.UsageError("--partition and --pattern exclude each other")
        ways = {
            "--format": self.format is not None,
            "--json": self.as_json,
            "--property": bool(self.properties),
            "--key-delimiter": self.key_delimiter is not None,
        }
        both = [name for name, given in ways.items() if given][:2]
        if len(both) == 2:
            why = ": JSON has the key in it" if both == ["--json", "--key-delimiter"] else ""
            raise click.UsageError(f"{both[0]} and {both[1]} exclude each other{why}")
        if self.record_delimiter is not None and (self.format or self.as_json or self.properties):
            raise click.UsageError(f"--delimiter and {both[0]} exclude each other")

    def keywords(self) -> dict[str, Any]:
        """For `hmb.Consumer`: settings, and what options say, which wins."""
        start, until = self.span()
        keywords = client_keywords(CONSUMER, self.config, self.settings)
        if (reset := keywords.get("offset", "latest")) not in RESETS:
            raise click.UsageError(f"auto.offset.reset={reset}: must be {' or '.join(RESETS)}")
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
        if self.assignors:
            uniform = keywords.get("group_protocol") == "consumer"
            keywords |= {"remote_assignor": self.assignors[0]} if uniform else {"assignors": self.assignors}
        keywords.setdefault("offset", "latest")
        if "group" in keywords and "partitions" in keywords:
            raise click.UsageError("--group and --partition exclude each other: a group shares out its partitions")
        if "group" not in keywords and (self.group_instance_id or self.assignors or merge(self.spans).stored):
            raise click.UsageError("--static, --assignor and `--offset stored` are of groups: give --group")
        return keywords


OPTIONS: list[Callable[[Any], Any]] = [
    click.argument("topics", nargs=-1, type=topic_name, shell_complete=complete_topics),
    FROM("-o", "--offset", "spans", type=parse_span, multiple=True, metavar="OFFSET", help="""
        start, end, an offset, +N (after the start), -N (before the end), FROM:TO, @TIME, @TIME:TIME, s@TIME, e@TIME,
        stored. TIME: 2026-02-14, 2026-02-14T10:30:00Z, ms or s since 1970, -1h.  [default: end]"""),
    FROM("--from-beginning", is_flag=True, help="Start with the oldest record."),
    FROM("--tail", type=click.IntRange(1), metavar="N", help="The last N records of each partition, and stop."),
    FROM("-e", "--exit", "to_end", is_flag=True, help="Stop at the end of the log; starts at the oldest record."),
    FROM("-c", "--count", synonyms=("-n", "--num", "--max-messages"), type=click.IntRange(1), metavar="N",
        help="Stop after so many printed records."),
    FROM("--timeout-ms", type=click.IntRange(1), metavar="MS", help="Stop when nothing has come for so long."),
    FROM("-p", "--partition", "partitions", type=partitions, multiple=True, metavar="LIST",
        shell_complete=complete_partitions, help="Only these partitions: 0 or 0,2,4-7."),
    GROUP("-G", "--group", metavar="NAME", shell_complete=complete_groups,
        help="Share the partitions with this group; start where it has come to, commit what is printed."),
    GROUP("--static", "group_instance_id", synonyms=["--group-instance-id"], metavar="ID",
        help="Be this static member: who comes back in time gets its partitions back."),
    GROUP("--group-protocol", type=click.Choice(["classic", "consumer"]), help="consumer: the one of KIP-848."),
    GROUP("--assignor", "assignors", synonyms=["--balancer"], multiple=True, metavar="NAME",
        help=f"How to share out: {', '.join(ASSIGNORS)}; with --group-protocol consumer: uniform, range."),
    WHICH("-t", "--topic", "more_topics", type=topic_name, multiple=True, metavar="TOPIC",
        shell_complete=complete_topics, help="As the argument."),
    WHICH("--pattern", synonyms=["--include", "--whitelist"], type=regular_expression, metavar="REGEX",
        help="All topics whose whole name matches, also those that are created later."),
    WHICH("--exclude", synonyms=["--blacklist"], type=regular_expression, metavar="REGEX", help="But not these."),
    WHICH("--filter-key", "filter_keys", type=search, multiple=True, metavar="REGEX",
        help="Only records in whose key this is found."),
    WHICH("--filter-value", "filter_values", synonyms=["--grep"], type=search, multiple=True, metavar="REGEX",
        help="Only records in whose value this is found."),
    WHICH("--filter-header", "filter_headers", type=header_search, multiple=True, metavar="NAME=REGEX",
        help="Only records with such a header."),
    WHICH("--isolation-level", type=click.Choice(ISOLATION_LEVELS),
        help="read_committed leaves out what transactions have not committed.  [default: read_uncommitted]"),
    HOW("-f", "--format", "format", type=parse_format, metavar="FORMAT", help=r"""
        %t topic, %p partition, %o offset, %k key, %s value (%v), %h headers, %T timestamp (%d), %K %S lengths,
        %H how many headers, %R length in 4 bytes, %i count; %v{hex}, {base64}, {unpack[>I$]}, %o{big32},
        %d{strftime[%F %T]}, %h{ %k=%v}; \n \t \xHH \0 %%. %T is kcat's timestamp, not rpk's length."""),
    HOW("-J", "--json", "as_json", is_flag=True, help="All of a record as JSON, one a line; produce --json reads it."),
    HOW("-K", "--key-delimiter", type=delimiter, metavar="TEXT",
        help=r"Print the key and TEXT (\t, \n, \0, \xHH too) before each value."),
    HOW("-D", "--delimiter", "record_delimiter", type=delimiter, metavar="TEXT",
        help=r"Print TEXT behind each record.  [default: \n]"),
    HOW("-Z", "--null", is_flag=True, help="Print NULL for what is null, not an empty text."),
    HOW("--property", "properties", synonyms=["--formatter-property"], type=name_value, multiple=True,
        metavar="NAME=VALUE",
        help="As kafka-console-consumer: print.key=true, print.headers, print.timestamp, print.partition, "
        "print.offset, print.value, key.separator, headers.separator, line.separator, null.literal."),
    HOW("-v", "--verbose", is_flag=True, help="Say when the end of a partition is reached, as on a terminal."),
    HOW("-q", "--quiet", is_flag=True, help="Do not say it."),
    HOW("-u", "--unbuffered", is_flag=True, hidden=True, help="As kcat has it; nothing is ever kept back."),
    bootstrap_option,
    settings_option(CONSUMER, "--consumer-property", "--command-property"),
    config_option("--consumer-config", "--consumer.config", "--command-config"),
]  # fmt: skip


def consume_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The decorator that gives a command all of them."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command
