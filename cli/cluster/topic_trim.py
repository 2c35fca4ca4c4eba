"""`hmb topics trim`: delete the oldest records of a topic."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ..completion import complete_partitions
from ..records.offset_grammar import moment
from ..shared.common import CliError, IntRange, print_json
from ..shared.tables import plural, print_table
from .administration import Target, admin_options, chosen_partitions, raise_failures, topic_argument

if TYPE_CHECKING:
    from hmb.client import Admin, TopicPartition
    from hmb.protocol.errors import KafkaError

Offsets = dict["TopicPartition", int]


@click.command()
@topic_argument
@click.option("-o", "--offset", type=IntRange(0), help="Delete what is before this offset.")
@click.option("--time", "timestamp", type=moment, metavar="TIME", help="Delete what is older than this.")
@click.option("--keep", type=IntRange(0), metavar="N", help="Delete all but the last N of each partition.")
@click.option("--all", "everything", is_flag=True, help="Delete all records.")
@click.option(
    "-p",
    "--partition",
    "partitions",
    type=IntRange(0),
    multiple=True,
    help="Only in this partition.",
    shell_complete=complete_partitions,
)
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@admin_options
def trim(
    topic: str,
    offset: int | None,
    timestamp: int | None,
    keep: int | None,
    everything: bool,
    partitions: tuple[int, ...],
    dry_run: bool,
    target: Target,
    as_json: bool,
) -> None:
    """Delete the oldest records of TOPIC: those before an offset or a time, or all but the last.

    TIME is 2026-02-14T10:30:00Z, seconds or milliseconds since 1970, or -1h30m for so long ago. The records before the
    first one that is younger go, whatever their own times are. Segments that hold none of the others leave the disk.
    """
    if [offset, timestamp, keep, everything or None].count(None) != 3:
        raise click.UsageError("say what goes, in one way: --offset, --time, --keep or --all")
    with target.admin() as admin:
        chosen = chosen_partitions(admin, [(topic, partitions or None)])
        start, end = _ends(admin, chosen)
        if timestamp is not None:
            before = _at_time(admin, timestamp, end)
        elif keep is not None:
            before = {partition: end[partition] - keep for partition in chosen}
        else:
            before = {partition: end[partition] if offset is None else offset for partition in chosen}
        _check(before, end)
        before = {partition: max(before[partition], start[partition]) for partition in chosen}
        moved = {partition: number for partition, number in before.items() if number > start[partition]}
        results = {} if dry_run or not moved else admin.delete_records(moved)
    failed = {partition: result for partition, result in results.items() if isinstance(result, Exception)}
    after = before | {partition: result for partition, result in results.items() if isinstance(result, int)}
    done = [it for it in chosen if it not in failed]
    rows = [(it.partition, start[it], after[it], end[it], after[it] - start[it]) for it in done]
    if rows or as_json:
        _print(topic, rows, dry_run, as_json)
    raise_failures(_explained(partition, error) for partition, error in failed.items())


COLUMNS = ("partition", "log_start_offset", "new_start_offset", "log_end_offset", "deleted")


def _explained(partition: "TopicPartition", error: "KafkaError") -> "KafkaError":
    """The broker's answer, and what to do about the one that needs a word."""
    from hmb.protocol.errors import ErrorCode, KafkaError

    if error.code is not ErrorCode.POLICY_VIOLATION:
        return error
    why = "only compaction removes records of this topic; add delete to its cleanup.policy"
    return KafkaError(error.code, f"{partition}: {why}")


def _print(topic: str, rows: Sequence[tuple[int, ...]], dry_run: bool, as_json: bool) -> None:
    if as_json:
        partitions = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
        print_json({"topic": topic, "dry_run": dry_run, "partitions": partitions})
        return
    print_table(COLUMNS, rows)
    deleted = plural(sum(row[-1] for row in rows), "offset")
    click.echo(f"{deleted} would go; nothing was done (--dry-run)" if dry_run else f"{deleted} gone", err=True)


def _ends(admin: "Admin", partitions: "list[TopicPartition]") -> tuple[Offsets, Offsets]:
    from hmb.client.admin import raised

    start = admin.list_offsets(dict.fromkeys(partitions, "earliest"))
    end = admin.list_offsets(dict.fromkeys(partitions, "latest"))
    return tuple({it: raised(found[it]).offset for it in partitions} for found in (start, end))  # type: ignore[return-value]


def _at_time(admin: "Admin", timestamp: int, end: Offsets) -> Offsets:
    """The first record that is not older, or the end."""
    from hmb.client.admin import raised

    found = admin.list_offsets(dict.fromkeys(end, timestamp))
    offsets = {partition: raised(found[partition]).offset for partition in end}
    return {partition: end[partition] if offset < 0 else offset for partition, offset in offsets.items()}


def _check(before: Offsets, end: Offsets) -> None:
    for partition, offset in before.items():
        if offset > end[partition]:
            raise CliError(f"{partition} ends before offset {end[partition]}, there is nothing up to {offset}")
