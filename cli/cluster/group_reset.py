"""`hmb groups reset`: set the offsets of a group, with the options of kafka-consumer-groups.

Without --execute, `hmb groups reset` only prints a plan: the new offset of each partition. A user can store the
plan in a file, and execute it later. For example, this command stores the plan in the file plan.csv:
    hmb groups reset readers --all-topics --to-earliest --export > plan.csv

The file plan.csv contains one line for each partition. For example, this line sets the offset of partition 0 of the
topic weather to 0:
    weather,0,0

This command executes the plan:
    hmb groups reset readers --from-file plan.csv --execute

`hmb groups reset` and Kafka's tool kafka-consumer-groups use the same file format for new offsets. Each
line is `topic,partition,offset`.

A consumer group has committed offsets. A share group has no committed offsets. It has a start offset in each partition,
and `hmb groups reset` sets this offset instead. The options --to-current and --shift-by start from the committed
offsets, so the command refuses these options for a share group.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hmb.protocol.enums import GroupType
from hmb.units import now_ms

from ..shared.client_options import ClientConfig, cluster_options
from ..shared.completion import complete_topics
from ..shared.errors import CliError
from ..shared.output import plural, print_rows
from ..shared.parameters import IntRange, NewPath, topic_partitions
from ..shared.subjects import Partitions, chosen_partitions, group_argument, raise_failures
from ..shared.times import moment

if TYPE_CHECKING:
    from hmb.client import Admin, TopicPartition
    from hmb.client.admin import GroupDescription, PlannedOffset, ResetTo

    Plan = dict[TopicPartition, PlannedOffset]

ISO_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII)
COLUMNS = ("topic", "partition", "current_offset", "new_offset")
WAYS = "--to-earliest, --to-latest, --to-current, --to-offset, --shift-by, --by-duration, --to-datetime or --from-file"
SHARE_WAYS = "--to-earliest, --to-latest, --to-offset, --by-duration, --to-datetime or --from-file"


def ago(text: str) -> int:
    """Return the present time minus a duration, in ms since 1970. The text is, for example, `PT1H30M` or `1h30m`."""
    iso = ISO_DURATION.fullmatch(text)
    if iso is not None and any(iso.groups()):
        days, hours, minutes, seconds = (float(part or 0) for part in iso.groups())
        passed = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        return max(now_ms() - passed // timedelta(milliseconds=1), 0)
    try:
        return moment(f"-{text}")
    except click.BadParameter:
        what = f"{text!r} is not a duration: write PT1H30M, P7D, 1h30m or 90s"
        raise click.BadParameter(what) from None


@click.command()
@group_argument
@click.option(
    "--topic", "topics", type=topic_partitions, multiple=True, metavar="TOPIC[:0,1]",
    help="Set the offsets of this topic, or only of some of its partitions.", shell_complete=complete_topics
)
@click.option(
    "--all-topics", is_flag=True, help="Set the offsets of all topics in which the group has offsets."
)
@click.option("--to-earliest", is_flag=True, help="Set each offset to the first record of the partition.")
@click.option(
    "--to-latest", is_flag=True, help="Set each offset to the end of the partition: the group reads only new records."
)
@click.option(
    "--to-current", is_flag=True,
    help="Keep each committed offset. For a partition without a committed offset, use the end of the partition."
)
@click.option("--to-offset", type=IntRange(0), help="Set each offset to this number.")
@click.option("--shift-by", type=int, metavar="N", help="Add N to each committed offset. N can be negative.")
@click.option(
    "--by-duration", type=ago, metavar="DURATION",
    help="Set each offset to the first record that is not older than DURATION. Write 90 minutes as 1h30m or PT1H30M."
)
@click.option(
    "--to-datetime", type=moment, metavar="TIME",
    help="Set each offset to the first record at or after this time (UTC).",
)
@click.option(
    "--from-file", type=NewPath(), metavar="FILE",
    help="Set the group's offsets to the offsets in this CSV file. The option --export prints a plan in this format."
)
@click.option("--execute", is_flag=True, help="Set the offsets that the plan shows.")
@click.option("--dry-run", is_flag=True, help="Show the plan, and change nothing. This is the default.")
@click.option("--export", is_flag=True, help="Print the plan as CSV for --from-file.")
@click.option("--create", is_flag=True, help="Create the group if it does not exist.")
@cluster_options
def reset(
    group: str,
    topics: Partitions,
    all_topics: bool,
    from_file: str | None,
    execute: bool,
    dry_run: bool,
    export: bool,
    create: bool,
    client: ClientConfig,
    as_json: bool,
    **ways: Any,
) -> None:
    """Set the committed offsets of GROUP. When its consumers start again, they continue at these offsets.

    Without --execute, the command only shows a plan. --execute sets the offsets. Stop the group's members first. If the
    log does not contain an offset, the nearest offset in the log is set instead.

    If GROUP is a share group, set the start offsets of its partitions. The group delivers all records from these
    offsets on, even records that its consumers have accepted.
    """
    if execute and (dry_run or export):
        raise click.UsageError("--execute sets the offsets, --dry-run and --export only show them: choose one")
    to = _way(ways, from_file)
    if bool(topics) + all_topics + (from_file is not None) != 1:
        raise click.UsageError("choose exactly one of these options: --topic, --all-topics, --from-file")
    wanted = None if from_file is None else _read_plan(Path(from_file))
    with client.admin() as admin:
        described = _check_group(admin, group, create, execute)
        is_share = described is not None and described.type == GroupType.SHARE
        plan = (_share_plan if is_share else _plan)(admin, group, topics, wanted, to)
        if execute:
            _execute(admin, group, plan, is_share)
    _warn(group, plan, described is not None and described.is_active)
    _print(group, plan, execute, export, as_json)


def _execute(admin: Admin, group: str, plan: Plan, is_share: bool) -> None:
    offsets = {partition: planned.offset for partition, planned in plan.items()}
    if is_share:
        admin.alter_share_offsets(group, offsets)
    else:
        raise_failures(error for error in admin.alter_group_offsets(group, offsets).values() if error)


def _print(group: str, plan: Plan, executed: bool, export: bool, as_json: bool) -> None:
    if export:
        for partition, planned in plan.items():
            click.echo(f"{partition.topic},{partition.partition},{planned.offset}")
        return
    rows = [
        {"group": group, "topic": it.topic, "partition": it.partition, "current_offset": planned.committed,
         "new_offset": planned.offset, "executed": executed}
        for it, planned in plan.items()
    ]  # fmt: skip
    print_rows(COLUMNS, rows, as_json)
    if not as_json:
        done = f"{plural(len(rows), 'offset')} set" if executed else "nothing was changed; --execute sets the offsets"
        click.echo(done, err=True)


def _way(ways: dict[str, Any], from_file: str | None) -> ResetTo | None:
    """Return the way in which the user wants to choose the new offsets, for example "earliest" for --to-earliest.

    Return None if the user has chosen a file with the new offsets (--from-file).
    """
    from hmb.client.admin import ShiftBy
    from hmb.client.offsets import AtTime

    chosen = {name: value for name, value in ways.items() if value is not None and value is not False}
    if len(chosen) + (from_file is not None) != 1:
        raise click.UsageError(f"choose one: {WAYS}")
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


def _check_group(admin: Admin, group: str, create: bool, execute: bool) -> GroupDescription | None:
    """Return the description of the group. Return None if `create` is true and the group does not exist.

    Raises CliError if `execute` is true and the group has members. If the group does not exist and `create` is false,
    raises KafkaError.
    """
    from hmb.client.admin import raised
    from hmb.protocol.errors import ErrorCode, KafkaError

    try:
        described = raised(admin.describe_groups([group])[group])
    except KafkaError as error:
        if error.code is ErrorCode.UNSUPPORTED_VERSION:  # Kafka 0.8.2 has no group members.
            return None
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        if create:
            return None
        raise KafkaError(error.code, f"{error.message} (use --create to create the group)") from error
    if described.is_active and execute:
        members = plural(len(described.members), "member")
        what = f"group {group!r} is {described.state}, with {members}: stop its consumers first; nothing was changed"
        raise CliError(what)
    return described


def _plan(
    admin: Admin, group: str, topics: Partitions, wanted: dict[TopicPartition, int] | None, to: ResetTo | None
) -> Plan:
    if wanted is not None:
        return _imported(admin, wanted, lambda partitions, offset: admin.plan_reset(group, partitions, offset))
    assert to is not None
    chosen = chosen_partitions(admin, topics) if topics else sorted(admin.list_group_offsets(group))
    if not chosen:
        raise CliError(f"group {group!r} has no committed offsets; name topics with --topic")
    return admin.plan_reset(group, chosen, to)


def _share_plan(
    admin: Admin, group: str, topics: Partitions, wanted: dict[TopicPartition, int] | None, to: ResetTo | None
) -> Plan:
    """Return the new start offsets of a share group.

    Raises CliError for the options --to-current and --shift-by, which need committed offsets. A share group has no
    committed offsets.
    """
    from hmb.client.admin import ShiftBy

    if wanted is not None:
        return _imported(admin, wanted, lambda partitions, offset: admin.plan_share_reset(group, partitions, offset))
    assert to is not None
    if to == "current" or isinstance(to, ShiftBy):
        option = "--to-current" if to == "current" else "--shift-by"
        what = f"{option} needs committed offsets, but group {group!r} is a share group, which has none"
        raise CliError(f"{what}; choose {SHARE_WAYS}")
    chosen = chosen_partitions(admin, topics) if topics else sorted(admin.list_share_offsets(group))
    if not chosen:
        raise CliError(f"share group {group!r} has no start offsets; name topics with --topic")
    return admin.plan_share_reset(group, chosen, to)


def _imported(
    admin: Admin, wanted: dict[TopicPartition, int], plan: Callable[[list[TopicPartition], int], Plan]
) -> Plan:
    """Return the plan for resetting a group to the offsets in a file.

    `wanted` maps each partition to its offset in the file. The function `plan` accepts a list of partitions, but
    only one offset for all of them. It is therefore called once for each different offset in the file.
    """
    chosen_partitions(admin, [(topic, (partition,)) for topic, partition in wanted])
    return {
        partition: planned
        for offset in dict.fromkeys(wanted.values())
        for partition, planned in plan([it for it, number in wanted.items() if number == offset], offset).items()
    }


def _warn(group: str, plan: Plan, is_active: bool) -> None:
    """Print a warning for each offset that the log does not contain, and another warning if the group has members."""
    for partition, planned in plan.items():
        if planned.was_clipped:
            nearest = f"the nearest offset is {planned.offset}"
            click.echo(f"hmb: {partition}: the log does not contain this offset; {nearest}", err=True)
    if is_active:
        click.echo(f"hmb: group {group!r} has members; --execute is refused until they have stopped", err=True)


def _read_plan(path: Path) -> dict[TopicPartition, int]:
    """Return the offsets in a file of lines `topic,partition,offset`.

    Raises CliError if a line is wrong, or if the file is empty.
    """
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
        raise CliError(f"{path}: the file is empty; write the output of --export to this file")
    return wanted
