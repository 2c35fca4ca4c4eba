"""`hmb offsets`: where the partitions of topics begin and end, or where they are at a time."""

from typing import TYPE_CHECKING, Any

import click

from ..completion import complete_topics
from ..records.offset_grammar import moment
from ..shared.common import print_json
from ..shared.tables import print_table
from .administration import (
    Partitions,
    Target,
    admin_options,
    chosen_partitions,
    named,
    raise_failures,
    topic_partitions,
)

if TYPE_CHECKING:
    from hmb.client import Admin, TopicPartition
    from hmb.client.admin import OffsetSpec

WORDS: "dict[str, OffsetSpec]" = {
    "earliest": "earliest",
    "latest": "latest",
    "max-timestamp": "max-timestamp",
    "earliest-local": "earliest-local",
    "latest-tiered": "latest-tiered",
    "-2": "earliest",
    "-1": "latest",
    "-3": "max-timestamp",
    "-4": "earliest-local",
    "-5": "latest-tiered",
}
ENDS_ASKED: "tuple[tuple[str, OffsetSpec], ...]" = (("earliest", "earliest"), ("latest", "latest"))
ENDS = ("topic", "partition", "earliest", "latest", "span")
POINTS = ("topic", "partition", "time", "offset", "timestamp")


def point(text: str) -> "tuple[str, OffsetSpec]":
    """The type of an option: a word of kafka-get-offsets, or a time; with the text as it was typed."""
    if text in WORDS:
        return str(WORDS[text]), WORDS[text]
    try:
        return text, moment(text)
    except click.BadParameter as error:
        words = "earliest, latest, max-timestamp, earliest-local, latest-tiered"
        raise click.BadParameter(f"{error.message}; or one of {words}") from None


@click.command()
@named("topic", "-t", topic_partitions, complete_topics, several=True, needed=False)
@click.option("--time", "points", type=point, multiple=True, metavar="TIME", help="Where the partitions are at TIME.")
@click.option("-i", "--internal", is_flag=True, help="With Kafka's own topics, too, if none is named.")
@click.option("--committed", is_flag=True, help="The end for a reader of committed records: the last stable offset.")
@admin_options
def command(
    topics: Partitions,
    points: "tuple[tuple[str, OffsetSpec], ...]",
    internal: bool,
    committed: bool,
    target: Target,
    as_json: bool,
) -> None:
    """Show from where to where each partition of TOPICS reaches, or of all topics.

    The span is how many offsets that are: as many records, but for markers of transactions and what was compacted.

    With --time instead the first record at or after a time, in each partition: TIME is 2026-02-14T10:30:00Z, seconds or
    milliseconds since 1970, -1h30m for so long ago; or earliest, latest, max-timestamp (the record with the greatest
    timestamp), earliest-local, latest-tiered, which Kafka's tool also calls -2, -1, -3, -4, -5.
    """
    from hmb.protocol.errors import KafkaError

    with target.admin() as admin:
        wanted = topics or [(topic.name, None) for topic in admin.list_topics(internal=internal)]
        partitions = chosen_partitions(admin, wanted)
        specs = points or ENDS_ASKED
        found = [(text, _list(admin, partitions, spec, committed)) for text, spec in specs]
    failed = {it: error for _, offsets in found for it, error in offsets.items() if isinstance(error, KafkaError)}
    led = [partition for partition in partitions if partition not in failed]
    rows: list[tuple[object, ...]]
    if points:
        rows = [(*it, text, offsets[it].offset, offsets[it].timestamp) for it in led for text, offsets in found]
    else:
        (_, first), (_, last) = found
        rows = [(*it, first[it].offset, last[it].offset, last[it].offset - first[it].offset) for it in led]
    _print(POINTS if points else ENDS, rows, as_json)
    raise_failures(failed.values())


def _list(admin: "Admin", partitions: "list[TopicPartition]", spec: "OffsetSpec", committed: bool) -> dict[Any, Any]:
    return admin.list_offsets(
        dict.fromkeys(partitions, spec), isolation_level="read_committed" if committed else "read_uncommitted"
    )


def _print(columns: tuple[str, ...], rows: list[tuple[object, ...]], as_json: bool) -> None:
    if as_json:
        print_json([{name: _nothing(value) for name, value in zip(columns, row, strict=True)} for row in rows])
    elif rows:
        print_table(columns, [[_nothing(value) for value in row] for row in rows])


def _nothing(value: object) -> object:
    return None if value == -1 else value
