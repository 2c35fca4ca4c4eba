"""`hmb groups reset`: set what a group has committed, in all ways of kafka-consumer-groups, and under its names.

A plan is printed; nothing is changed without --execute.  With --export the plan is a file of `topic,partition,offset`
lines, which --from-file takes back, here and in Kafka's tool.
"""

import csv
import re
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..completion import complete_topics
from ..records.offset_grammar import moment
from ..shared.common import CliError, IntRange, NewPath, print_json
from ..shared.tables import plural, print_table
from .administration import (
    Partitions,
    Target,
    admin_options,
    chosen_partitions,
    group_argument,
    raise_failures,
    topic_partitions,
)

if TYPE_CHECKING:
    from hmb.client import Admin, TopicPartition
    from hmb.client.admin import PlannedOffset, ResetTo

    Plan = dict[TopicPartition, PlannedOffset]

ISO_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII)
COLUMNS = ("topic", "partition", "current_offset", "new_offset")
WAYS = "--to-earliest, --to-latest, --to-current, --to-offset, --shift-by, --by-duration, --to-datetime or --from-file"


def ago(text: str) -> int:
    """The type of an option: so long before now, as PT1H30M or 1h30m; in ms since 1970."""
    iso = ISO_DURATION.fullmatch(text)
    if iso is not None and any(iso.groups()):
        days, hours, minutes, seconds = (float(part or 0) for part in iso.groups())
        passed = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        return max(time.time_ns() // 1_000_000 - passed // timedelta(milliseconds=1), 0)
    try:
        return moment(f"-{text}")
    except click.BadParameter:
        what = f"{text!r} is no duration: write PT1H30M, P7D, 1h30m or 90s"
        raise click.BadParameter(what) from None


@click.command(short_help="Set what a group has committed; plans first.")
@group_argument
@click.option(
    "--topic",
    "topics",
    type=topic_partitions,
    multiple=True,
    metavar="TOPIC[:0,1]",
    help="In this topic, or these partitions of it.",
    shell_complete=complete_topics,
)
@click.option("--all-topics", is_flag=True, help="In all topics in which the group has committed anything.")
@click.option("--to-earliest", is_flag=True, help="To the first record there is.")
@click.option("--to-latest", is_flag=True, help="To the end: only what comes from now on.")
@click.option("--to-current", is_flag=True, help="To what it is; to the end where it is nothing.")
@click.option("--to-offset", type=IntRange(0), help="To this offset.")
@click.option("--shift-by", type=int, metavar="N", help="By so many offsets, forward or (-N) back.")
@click.option("--by-duration", type=ago, metavar="DURATION", help="To the first record of the last PT1H30M, or 1h30m.")
@click.option("--to-datetime", type=moment, metavar="TIME", help="To the first record at or after a time (UTC).")
@click.option("--from-file", type=NewPath(), metavar="FILE", help="To what a file of --export says.")
@click.option("--execute", is_flag=True, help="Do it.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done: the default.")
@click.option("--export", is_flag=True, help="Print the plan as CSV, for --from-file.")
@click.option("--create", is_flag=True, help="A group that there is not is made.")
@admin_options
def reset(
    group: str,
    topics: Partitions,
    all_topics: bool,
    from_file: str | None,
    execute: bool,
    dry_run: bool,
    export: bool,
    create: bool,
    target: Target,
    as_json: bool,
    **ways: Any,
) -> None:
    """Set what GROUP has committed, where it is to read on when its consumers start again.

    Shows the plan; --execute does it, once the group has no members any more. An offset that the log does not hold
    becomes the nearest that it does.
    """
    if execute and (dry_run or export):
        raise click.UsageError("--execute does it, --dry-run and --export only show it: which one?")
    to = _way(ways, from_file)
    if bool(topics) + all_topics + (from_file is not None) != 1:
        raise click.UsageError("say where: --topic, --all-topics, or the lines of --from-file")
    wanted = None if from_file is None else _read_plan(Path(from_file))
    with target.admin() as admin:
        is_active = _check_group(admin, group, create, execute)
        plan = _plan(admin, group, topics, wanted, to)
        if execute:
            raise_failures(error for error in admin.alter_group_offsets(group, _offsets(plan)).values() if error)
    _warn(group, plan, is_active)
    if export:
        for partition, planned in plan.items():
            click.echo(f"{partition.topic},{partition.partition},{planned.offset}")
    else:
        _print(group, plan, execute, as_json)


def _print(group: str, plan: "Plan", executed: bool, as_json: bool) -> None:
    rows = [(it.topic, it.partition, planned.committed, planned.offset) for it, planned in plan.items()]
    if as_json:
        offsets = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
        print_json({"group": group, "executed": executed, "offsets": offsets})
        return
    print_table(COLUMNS, rows)
    done = f"{plural(len(rows), 'offset')} set" if executed else "nothing was done; --execute does it"
    click.echo(done, err=True)


def _way(ways: dict[str, Any], from_file: str | None) -> "ResetTo | None":
    """The one way that was chosen; None: from a file."""
    from hmb.client.admin import ShiftBy
    from hmb.client.offsets import AtTime

    chosen = {name: value for name, value in ways.items() if value is not None and value is not False}
    if len(chosen) + (from_file is not None) != 1:
        raise click.UsageError(f"say to what, in one way: {WAYS}")
    match next(iter(chosen.items()), None):
        case "to_earliest", _:
            return "earliest"
        case "to_latest", _:
            return "latest"
        case "to_current", _:
            return "current"
        case "shift_by", int(count):
            return ShiftBy(count)
        case "by_duration" | "to_datetime", int(timestamp):
            return AtTime(timestamp)
        case _, int(offset):
            return offset
    return None


def _check_group(admin: "Admin", group: str, create: bool, execute: bool) -> bool:
    """Whether the group has members; an error if that is in the way, or if there is no such group."""
    from hmb.client.admin import raised
    from hmb.protocol.errors import ErrorCode, KafkaError

    try:
        described = raised(admin.describe_groups([group])[group])
    except KafkaError as error:
        if error.code is ErrorCode.UNSUPPORTED_VERSION:  # 0.8.2 has no groups, but their offsets
            return False
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        if create:
            return False
        raise KafkaError(error.code, f"{error.message} (--create makes one)") from error
    if described.is_active and execute:
        members = plural(len(described.members), "member")
        what = f"group {group!r} is {described.state}, with {members}: stop its consumers first; nothing was changed"
        raise CliError(what)
    return described.is_active


def _plan(
    admin: "Admin", group: str, topics: Partitions, wanted: "dict[TopicPartition, int] | None", to: "ResetTo | None"
) -> "Plan":
    if wanted is not None:
        chosen_partitions(admin, [(topic, (partition,)) for topic, partition in wanted])
        return {
            partition: planned
            for offset in dict.fromkeys(wanted.values())
            for partition, planned in admin.plan_reset(
                group, [it for it, number in wanted.items() if number == offset], offset
            ).items()
        }
    assert to is not None
    chosen = chosen_partitions(admin, topics) if topics else sorted(admin.list_group_offsets(group))
    if not chosen:
        raise CliError(f"group {group!r} has committed nothing; name topics with --topic")
    return admin.plan_reset(group, chosen, to)


def _offsets(plan: "Plan") -> "dict[TopicPartition, int]":
    return {partition: planned.offset for partition, planned in plan.items()}


def _warn(group: str, plan: "Plan", is_active: bool) -> None:
    for partition, planned in plan.items():
        if planned.was_clipped:
            click.echo(f"hmb: {partition}: the log does not reach so far; {planned.offset} is the nearest", err=True)
    if is_active:
        click.echo(f"hmb: group {group!r} has members; --execute is refused until they have stopped", err=True)


def _read_plan(path: Path) -> "dict[TopicPartition, int]":
    """Offsets from `topic,partition,offset` lines."""
    from hmb.protocol.topics import TopicPartition

    wanted = {}
    with path.open(newline="", encoding="utf-8") as file:
        for number, row in enumerate(csv.reader(file), 1):
            if not row:
                continue
            cells = [cell.strip() for cell in row]
            if len(cells) != 3 or not all(cell.isascii() and cell.isdigit() for cell in cells[1:]):
                raise CliError(f"{path}, line {number}: {','.join(row)!r} is not topic,partition,offset")
            wanted[TopicPartition(cells[0], int(cells[1]))] = int(cells[2])
    if not wanted:
        raise CliError(f"{path}: there is nothing in it; --export writes such files")
    return wanted
