"""`hmb groups describe`: a group's members, and how far behind it is; once, or again and again."""

import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any

import click

from ..completion import complete_groups
from ..shared.common import print_json
from ..shared.patience import patience_with
from ..shared.streams import reader_has_left
from ..shared.tables import plural, print_table
from .administration import Target, admin_options, named

if TYPE_CHECKING:
    from hmb.client import Admin, TopicPartition
    from hmb.client.admin import GroupDescription, MemberDescription, PartitionLag

OFFSETS = ("topic", "partition", "current_offset", "log_end_offset", "lag", "lag_time")
WATCH_EVERY = 2.0  # seconds
MEMBER = ("member_id", "host", "client_id")


@dataclass
class Trend:
    """How lags change from one look at them to the next."""

    seen_at: float = 0.0  # time.monotonic()
    lags: "dict[tuple[str, TopicPartition], int]" = field(default_factory=dict)

    def note(self, group: str, lags: "Mapping[TopicPartition, PartitionLag]") -> "dict[TopicPartition, float]":
        """The change of each lag in records a second; nothing at the first look."""
        now = time.monotonic()
        passed = now - self.seen_at
        changes = {}
        for partition, described in lags.items():
            if described.lag is None:
                continue
            if (group, partition) in self.lags:
                changes[partition] = (described.lag - self.lags[group, partition]) / passed
            self.lags[group, partition] = described.lag
        return changes


@click.command(short_help="Show how far behind groups are, and who reads what.")
@named("group", "-G", complete=complete_groups, several=True, needed=False)
@click.option("--all-groups", is_flag=True, help="All groups that there are.")
@click.option("--members", is_flag=True, help="The members, and what each of them reads, in place of the offsets.")
@click.option("--state", "only_state", is_flag=True, help="Nothing but the first line.")
@click.option("--no-times", is_flag=True, help="Lags in records alone; reads no records for it.")
@click.option(
    "-w",
    "--watch",
    type=click.FloatRange(0, min_open=True),
    is_flag=False,
    flag_value=WATCH_EVERY,
    metavar="[SECONDS]",
    help=f"Look again every so often, or every {WATCH_EVERY:g} seconds.",
)
@admin_options
def describe(
    groups: tuple[str, ...],
    all_groups: bool,
    members: bool,
    only_state: bool,
    no_times: bool,
    watch: float | None,
    target: Target,
    as_json: bool,
) -> None:
    """Show how far behind GROUPS are, partition by partition, and who reads what.

    The lag is in records, and in time: how long the first record that was not read has been there. With --watch also
    its trend: how many records a second it grows by, or shrinks.
    """
    if all_groups == bool(groups):
        raise click.UsageError("name groups, or say --all-groups")
    if members and only_state:
        raise click.UsageError("--members and --state exclude each other")
    trend = Trend() if watch else None
    with target.unwatched_admin() as admin:
        for _ in _rounds(watch):
            with patience_with(target.servers):
                names = [it.group_id for it in admin.list_groups()] if all_groups else groups
                found = [_collect(admin, name, not (members or only_state), not no_times, trend) for name in names]
            if trend is not None:
                trend.seen_at = time.monotonic()
            if watch and not as_json:
                _begin_round()
            for number, group in enumerate(found):
                if as_json:
                    print_json(group)
                else:
                    click.echo("\n" * bool(number), nl=False)
                    _print_group(group, members, only_state)
            sys.stdout.flush()


def _rounds(watch: float | None) -> Iterator[None]:
    """One, or one every so many seconds until Ctrl-C, or until nobody reads any more."""
    yield
    while watch is not None:
        Event().wait(watch)
        if reader_has_left():
            raise BrokenPipeError
        yield


def _begin_round() -> None:
    if sys.stdout.isatty():
        click.clear()
    click.echo(time.strftime("%Y-%m-%d %H:%M:%S"))


def _collect(admin: "Admin", name: str, offsets: bool, times: bool, trend: Trend | None) -> dict[str, Any]:
    """All that is printed about a group, as `--json` has it."""
    group = _described(admin, name)
    members = () if group is None else group.members
    found: dict[str, Any] = {
        "group": name,
        "type": group and group.type,
        "state": group and group.state,
        "protocol_type": group and group.protocol_type,
        "assignor": group and group.assignor,
        "coordinator": group and f"{group.coordinator.host}:{group.coordinator.port}",
        "members": [_member(member) for member in members],
    }
    if offsets:
        owners = {partition: member for member in members for partition in member.assignment}
        lags = admin.describe_lag(name, owners, times=times)
        changes = None if trend is None else trend.note(name, lags)
        found["offsets"] = [_offset(it, lag, owners.get(it), changes) for it, lag in lags.items()]
        known = [lag.lag for lag in lags.values() if lag.lag is not None]
        found["lag"] = sum(known) if known or not lags else None
    return found


def _described(admin: "Admin", name: str) -> "GroupDescription | None":
    """The group; None from a broker that has no groups and keeps their offsets all the same (0.8.2)."""
    from hmb.client.admin import raised
    from hmb.protocol.errors import ErrorCode, KafkaError

    try:
        return raised(admin.describe_groups([name])[name])
    except KafkaError as error:
        if error.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
        return None


def _member(member: "MemberDescription") -> dict[str, Any]:
    assignment = {"assignment": [str(partition) for partition in member.assignment]}
    if member.target != member.assignment:
        assignment["target"] = [str(partition) for partition in member.target]
    return {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "host": member.host,
        **assignment,
    }


def _offset(
    partition: "TopicPartition",
    lag: "PartitionLag",
    owner: "MemberDescription | None",
    changes: "dict[TopicPartition, float] | None",
) -> dict[str, Any]:
    lag_ms = None
    if lag.unread_since is not None:
        lag_ms = max(time.time_ns() // 1_000_000 - lag.unread_since, 0)
    elif lag.lag == 0:
        lag_ms = 0
    found: dict[str, Any] = {
        "topic": partition.topic,
        "partition": partition.partition,
        "current_offset": lag.committed and lag.committed.offset,
        "log_end_offset": lag.log_end_offset,
        "lag": lag.lag,
        "lag_ms": lag_ms,
    }
    if changes is not None:
        found["trend"] = changes.get(partition)
    return found | {
        "member_id": owner and owner.member_id,
        "host": owner and owner.host,
        "client_id": owner and owner.client_id,
    }


def _print_group(group: dict[str, Any], members: bool, only_state: bool) -> None:
    known = [group["type"], group["state"], group["assignor"]]
    line = (
        f"group {group['group']}, {''.join(f'{it}, ' for it in known if it)}{plural(len(group['members']), 'member')}"
    )
    if group["coordinator"]:
        line += f", coordinator {group['coordinator']}"
    if "lag" in group:
        line += ", lag -" if group["lag"] is None else f", lag {group['lag']:,}{_outlook(group)}"
    click.echo(line)
    if members and group["members"]:
        _print_members(group["members"])
    elif group.get("offsets") and not only_state:
        _print_offsets(group["offsets"])


def _outlook(group: dict[str, Any]) -> str:
    """How the lag as a whole changes, and when it will be gone if it goes on like that."""
    changes = [offset["trend"] for offset in group["offsets"] if offset.get("trend") is not None]
    if not changes:
        return ""
    change = sum(changes)
    end = f", caught up in {duration(int(group['lag'] / -change * 1000))}" if group["lag"] and change < 0 else ""
    return f" ({_rate(change)}{end})"


def _print_members(members: list[dict[str, Any]]) -> None:
    columns = ("member_id", "group_instance_id", "host", "client_id", "partitions", "assignment")
    rows = [
        (
            *(member[name] for name in columns[:4]),
            len(member["assignment"]),
            " ".join(member["assignment"]) + (f" -> {' '.join(member['target'])}" if "target" in member else ""),
        )
        for member in members
    ]
    print_table(columns, rows)


def _print_offsets(offsets: list[dict[str, Any]]) -> None:
    has_trend = "trend" in offsets[0]
    rows = []
    for offset in offsets:
        row = [offset[name] for name in OFFSETS[:-1]] + [duration(offset["lag_ms"])]
        if has_trend:
            row.append(_rate(offset["trend"]))
        rows.append([*row, *(offset[name] for name in MEMBER)])
    print_table((*OFFSETS, *(("trend",) if has_trend else ()), *MEMBER), rows)


def _rate(change: float | None) -> str | None:
    return None if change is None else f"{change:+,.1f}/s" if change else "0/s"


def duration(milliseconds: int | None) -> str | None:
    """`2d3h`, `4m5s`, `0.2s`: two units at most."""
    if milliseconds is None:
        return None
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.1f}s" if milliseconds else "0s"
    seconds = milliseconds // 1000
    for name, size, part, smaller in (("d", 86400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if seconds >= size:
            return f"{seconds // size}{name}{seconds % size // smaller}{part}"
    raise AssertionError(milliseconds)
