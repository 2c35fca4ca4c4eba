"""`hmb topics trim`: delete the oldest records of a topic.

The request DeleteRecords raises the log start offset of a partition. Consumers can then no longer read the records
below this offset. When all records of a segment are below it, the broker deletes the segment from the disk. For
example, partition 0 contains the offsets 100 to 499:
    --offset 250    deletes the offsets 100 to 249
    --keep 10       deletes the offsets 100 to 489, and keeps the last 10
    --time -1d      deletes the offsets before the first record of the last 24 hours
    --all           deletes the offsets 100 to 499
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from ..shared.client_options import ClientConfig, cluster_options
from ..shared.completion import complete_partitions
from ..shared.errors import CliError
from ..shared.output import plural, print_rows
from ..shared.parameters import IntRange
from ..shared.subjects import chosen_partitions, raise_failures, topic_argument
from ..shared.times import moment

if TYPE_CHECKING:
    from hmb.client import Admin, TopicPartition
    from hmb.client.admin import OffsetSpec
    from hmb.protocol.errors import KafkaError

    Offsets = dict[TopicPartition, int]

COLUMNS = ("partition", "log_start_offset", "new_start_offset", "log_end_offset", "deleted")


@click.command()
@topic_argument
@click.option("-o", "--offset", type=IntRange(0), help="Delete all records at offsets below this one.")
@click.option(
    "--time", "timestamp", type=moment, metavar="TIME",
    help="Delete all records before the first record at or after this time."
)
@click.option("--keep", type=IntRange(0), metavar="N", help="Delete all records of each partition except the last N.")
@click.option("--all", "everything", is_flag=True, help="Delete all records.")
@click.option(
    "-p", "--partition", "partitions", type=IntRange(0), multiple=True, help="Delete records only in this partition.",
    shell_complete=complete_partitions
)
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and delete nothing.")
@cluster_options
def trim(
    topic: str,
    partitions: tuple[int, ...],
    dry_run: bool,
    client: ClientConfig,
    as_json: bool,
    **ways: Any,
) -> None:
    """Delete the oldest records of TOPIC: the records before an offset or a time, or all except the last N records.

    TIME is 2026-02-14T10:30:00Z, or a number of seconds or milliseconds since 1970. -1h30m means 1 hour and 30
    minutes before now. The command finds the first record with a timestamp at or after TIME, and deletes all
    records at lower offsets. Records at higher offsets stay, even if some of them have earlier timestamps.
    """
    if len([value for value in ways.values() if value is not None and value is not False]) != 1:
        raise click.UsageError("choose one: --offset, --time, --keep or --all")
    with client.admin() as admin:
        chosen = chosen_partitions(admin, [(topic, partitions or None)])
        start, end = _offsets(admin, chosen, "earliest"), _offsets(admin, chosen, "latest")
        wanted = _new_starts(admin, end, **ways)
        for partition, offset in wanted.items():
            if offset > end[partition]:
                raise CliError(f"offset {offset} is above the log end offset of {partition}, which is {end[partition]}")
        after = {partition: max(offset, start[partition]) for partition, offset in wanted.items()}
        moved = {partition: offset for partition, offset in after.items() if offset > start[partition]}
        results = {} if dry_run or not moved else admin.delete_records(moved)
    failed = {partition: result for partition, result in results.items() if isinstance(result, Exception)}
    after |= {partition: result for partition, result in results.items() if isinstance(result, int)}
    rows = [
        {"topic": topic, "partition": it.partition, "log_start_offset": start[it], "new_start_offset": after[it],
         "log_end_offset": end[it], "deleted": after[it] - start[it], "dry_run": dry_run}
        for it in chosen
        if it not in failed
    ]  # fmt: skip
    print_rows(COLUMNS, rows, as_json)
    if rows and not as_json:
        count = plural(sum(after[it] - start[it] for it in chosen if it not in failed), "offset")
        click.echo(f"{count} would be deleted; this was a dry run" if dry_run else f"{count} deleted", err=True)
    raise_failures(_explained(partition, error) for partition, error in failed.items())


def _new_starts(
    admin: Admin, end: Mapping[TopicPartition, int], offset: int | None, timestamp: int | None, keep: int | None,
    everything: bool,
) -> Offsets:  # fmt: skip
    """Return the new log start offset of each partition. The command deletes the records at lower offsets."""
    if everything:
        return dict(end)
    if keep is not None:
        return {partition: last - keep for partition, last in end.items()}
    if offset is not None:
        return dict.fromkeys(end, offset)
    assert timestamp is not None
    found = _offsets(admin, end, timestamp)
    return {partition: end[partition] if at < 0 else at for partition, at in found.items()}


def _offsets(admin: Admin, partitions: Iterable[TopicPartition], spec: OffsetSpec) -> Offsets:
    """Return the offset that `spec` selects in each partition.

    `spec` is a word such as `earliest`, or a time. A time selects the first record at or after this time. If a
    partition has no such record, its offset is -1.
    """
    from hmb.client.admin import raised

    found = admin.list_offsets(dict.fromkeys(partitions, spec))
    return {partition: raised(listed).offset for partition, listed in found.items()}


def _explained(partition: TopicPartition, error: KafkaError) -> KafkaError:
    """Return the broker's error. For a compacted topic, explain in the message why the broker deletes no records."""
    from hmb.protocol.errors import ErrorCode, KafkaError

    if error.code is not ErrorCode.POLICY_VIOLATION:
        return error
    why = "only compaction removes records of this topic; add delete to its cleanup.policy"
    return KafkaError(error.code, f"{partition}: {why}")
