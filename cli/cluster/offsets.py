"""`hmb offsets`: show the log start and log end offset of partitions, or the first offset at or after a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..shared.client_options import ClientConfig, cluster_options
from ..shared.completion import complete_topics
from ..shared.output import print_rows
from ..shared.parameters import topic_partitions
from ..shared.subjects import Partitions, chosen_partitions, internal_option, raise_failures, subject
from ..shared.times import moment

if TYPE_CHECKING:
    from hmb.client import TopicPartition
    from hmb.client.admin import OffsetSpec
    from hmb.defaults import IsolationLevelName


def point(text: str) -> tuple[str, OffsetSpec]:
    """Parse a time, or a word such as `earliest` that kafka-get-offsets accepts.

    Return two values: a name, which the output shows, and the value for the method `list_offsets` of `hmb.Admin`.
    """
    from hmb.client.admin.records import TIMESTAMPS

    for word, number in TIMESTAMPS.items():
        if text in (word, str(number)):
            return word, word
    try:
        return text, moment(text)
    except click.BadParameter as error:
        raise click.BadParameter(f"{error.message}; these words are also allowed: {', '.join(TIMESTAMPS)}") from None


@click.command()
@subject("topic", "-t", topic_partitions, complete_topics, several=True, required=False)
@click.option(
    "--time", "points", type=point, multiple=True, metavar="TIME", help="Show the first offset at or after this time."
)
@internal_option
@click.option(
    "--committed", is_flag=True, help="Show the last stable offset: the end for consumers with read_committed."
)
@cluster_options
def command(
    topics: Partitions,
    points: tuple[tuple[str, OffsetSpec], ...],
    internal: bool,
    committed: bool,
    client: ClientConfig,
    as_json: bool,
) -> None:
    """Show the first offset and the end offset of each partition of TOPICS.

    Without TOPICS, show all topics.

    The end offset of a partition is the offset of the next record. The column "span" shows the end offset minus the
    first offset. A partition contains at most this number of records. It contains fewer if compaction has removed
    records, or if some offsets belong to transaction markers.

    With --time, the command does not show these two offsets. It shows the offset of the first record at or after
    TIME in each partition. Examples of TIME are 2026-02-14T10:30:00Z, -1h30m (before now) and 1771065000 (seconds or
    milliseconds since 1970).

    TIME can also be a word: earliest, latest, max-timestamp (the record with the greatest timestamp),
    earliest-local or latest-tiered. Kafka's tool has a number for each word, and TIME can be such a number, too: -2
    for earliest, -1 for latest, -3 for max-timestamp, -4 for earliest-local, and -5 for latest-tiered.
    """
    from hmb.protocol.errors import KafkaError

    level: IsolationLevelName = "read_committed" if committed else "read_uncommitted"
    specs: tuple[tuple[str, OffsetSpec], ...] = points or (("", "earliest"), ("", "latest"))
    with client.admin() as admin:
        wanted = topics or [(topic.name, None) for topic in admin.list_topics(internal=internal)]
        partitions = chosen_partitions(admin, wanted)
        found: list[tuple[str, dict[Any, Any]]] = [
            (name, admin.list_offsets(dict.fromkeys(partitions, spec), isolation_level=level)) for name, spec in specs
        ]
    failed = {it: error for _, offsets in found for it, error in offsets.items() if isinstance(error, KafkaError)}
    led = [partition for partition in partitions if partition not in failed]
    if points:
        rows = [_at_time(it, name, offsets[it]) for it in led for name, offsets in found]
    else:
        (_, first), (_, last) = found
        end = "last_stable_offset" if committed else "log_end_offset"
        rows = [_ends(it, first[it].offset, end, last[it].offset) for it in led]
    if rows:
        print_rows(tuple(rows[0]), rows, as_json)
    raise_failures(failed.values())


def _ends(partition: TopicPartition, first: int, end: str, last: int) -> dict[str, Any]:
    """Return a row of the output for a partition: the offsets `first` and `last`, and their difference.

    `first` is the log start offset. `last` is the log end offset or the last stable offset. `end` is the name of
    the column for `last`: "log_end_offset" or "last_stable_offset".
    """
    return partition._asdict() | {"log_start_offset": first, end: last, "span": last - first}


def _at_time(partition: TopicPartition, name: str, listed: Any) -> dict[str, Any]:
    """Return one row of the output: a partition's offset for one value of the option --time.

    `name` is the value of the option. `listed` contains the offset and the timestamp that the broker has found for
    this value. If the offset or the timestamp is -1, the row contains None instead. For example, both are -1 if all
    records are older than the time.
    """
    values = {"time": name, "offset": listed.offset, "timestamp": listed.timestamp}
    return partition._asdict() | {key: None if value == -1 else value for key, value in values.items()}
