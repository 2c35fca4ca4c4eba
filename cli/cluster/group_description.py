"""`hmb groups describe`: show the members and the lag of a group, once or repeatedly.

The lag of a partition is the number of records that the group has not read yet. `hmb groups describe` also shows the
lag as a duration: the age of the first record that the group has not read.

With `--watch`, `hmb groups describe` measures the lags again and again. A `Trend` compares the two newest measurements.
For example, the lag is 600 at first, and 500 after 2 s. The trend is then -50 records/s. If the trend continues, the
group has read all records after 10 more seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any

import click

from hmb.protocol.enums import GroupType
from hmb.units import now_ms

from ..shared.client_options import ClientConfig, cluster_options
from ..shared.output import plural, print_json, print_rows
from ..shared.streams import reader_has_left
from ..shared.subjects import optional_groups_argument
from ..shared.times import format_duration
from ..shared.waiting_notice import notice_about

if TYPE_CHECKING:
    from hmb.client import Admin, TopicPartition
    from hmb.client.admin import GroupDescription, MemberDescription, PartitionLag, ShareOffset

OFFSETS = ("topic", "partition", "current_offset", "log_end_offset", "lag", "lag_time")
SHARE_OFFSETS = ("topic", "partition", "start_offset", "lag", "complete", "released", "delivery_count")
OWNER = ("member_id", "host", "client_id")
MEMBERS = ("member_id", "group_instance_id", "host", "client_id", "partitions", "assignment")
WATCH_INTERVAL = 2.0  # seconds


@dataclass
class Trend:
    """The lag of each partition when `--watch` last measured it.

    At the next measurement, `changes` compares the new lags with these stored lags.
    """

    seen_at: float = 0.0  # the time of the newest measurement: a value of time.monotonic()
    lags: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)

    def changes(self, group: str, lags: Mapping[TopicPartition, PartitionLag]) -> dict[TopicPartition, float]:
        """Store the lags of a group, and return the change of each lag in records/s.

        At the first call for a group, the dict is empty, because no older lags exist.
        """
        passed = time.monotonic() - self.seen_at
        changes = {}
        for partition, described in lags.items():
            if described.lag is None:
                continue
            if (group, partition) in self.lags:
                changes[partition] = (described.lag - self.lags[group, partition]) / passed
            self.lags[group, partition] = described.lag
        return changes


@click.command()
@optional_groups_argument
@click.option("--all-groups", is_flag=True, hidden=True, help="Show all groups, which is the default.")
@click.option("--members", is_flag=True, help="Show the members with their partitions, and no offsets.")
@click.option("--state", "only_state", is_flag=True, help="Show only one line for each group, with its state.")
@click.option(
    "--no-times", is_flag=True,
    help="Do not show the age of the first unread record. The command then reads no records."
)
@click.option(
    "-w", "--watch", type=click.FloatRange(0, min_open=True), is_flag=False, flag_value=WATCH_INTERVAL,
    metavar="[SECONDS]", help=f"Repeat the output every SECONDS seconds.  [default: {WATCH_INTERVAL:g}]"
)
@cluster_options
def describe(
    groups: tuple[str, ...],
    all_groups: bool,
    members: bool,
    only_state: bool,
    no_times: bool,
    watch: float | None,
    client: ClientConfig,
    as_json: bool,
) -> None:
    """Show the partitions that GROUPS read, with their lags and members. Without GROUPS, show all groups.

    The lag of a partition is the number of records that the group has not read yet. The command also shows the age
    of the first unread record. With --watch, the command shows how fast the lag grows (+) or falls (-), in records
    per second.

    For a share group, the command shows the start offset of each partition. The broker does not deliver records at
    lower offsets again.

    The columns "complete" and "released" count records of a share group at the start offset and at higher offsets.
    The broker does not deliver complete records again. Released records wait for another delivery.
    """
    if all_groups and groups:
        raise click.UsageError("choose either GROUPS or --all-groups, not both")
    if members and only_state:
        raise click.UsageError("--members and --state cannot be combined")
    trend = Trend() if watch else None
    with client.unwatched_admin() as admin:
        for _ in _rounds(watch):
            with notice_about(client.servers):
                names = groups or [it.group_id for it in admin.list_groups()]
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
    """Yield once for each time that the command must show its output.

    If `watch` is None, yield only once. Otherwise yield every `watch` seconds until Ctrl-C. Raises BrokenPipeError
    if no process reads standard output any more.
    """
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


def _collect(admin: Admin, name: str, offsets: bool, times: bool, trend: Trend | None) -> dict[str, Any]:
    """Return the fields that `--json` prints about a group. Raises KafkaError."""
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
    if offsets and group is not None and group.type == GroupType.SHARE:
        shares = admin.list_share_offsets(name)
        found["offsets"] = [_share_offset(partition, share) for partition, share in sorted(shares.items())]
        found["lag"] = sum(share.lag or 0 for share in shares.values())
    elif offsets:
        owners = {partition: member for member in members for partition in member.assignment}
        lags = admin.describe_lag(name, owners, times=times)
        changes = None if trend is None else trend.changes(name, lags)
        found["offsets"] = [_offset(it, lag, owners.get(it), changes) for it, lag in lags.items()]
        known = [lag.lag for lag in lags.values() if lag.lag is not None]
        found["lag"] = sum(known) if known or not lags else None
    return found


def _described(admin: Admin, name: str) -> GroupDescription | None:
    """Return the description of a group.

    Return None if the broker is Kafka 0.8.2. This version cannot describe a group: its groups have committed offsets,
    but no members.
    """
    from hmb.client.admin import raised
    from hmb.protocol.errors import ErrorCode, KafkaError

    try:
        return raised(admin.describe_groups([name])[name])
    except KafkaError as error:
        if error.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
        return None


def _member(member: MemberDescription) -> dict[str, Any]:
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
    partition: TopicPartition,
    lag: PartitionLag,
    owner: MemberDescription | None,
    changes: dict[TopicPartition, float] | None,
) -> dict[str, Any]:
    lag_ms = None
    if lag.unread_since is not None:
        lag_ms = max(now_ms() - lag.unread_since, 0)
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
    return found | {key: owner and getattr(owner, key) for key in OWNER}


def _share_offset(partition: TopicPartition, share: ShareOffset) -> dict[str, Any]:
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "start_offset": share.start_offset,
        "lag": share.lag,
        "complete": share.complete,
        "released": share.released,
        "delivery_count": share.delivery_count,
    }


# A group as lines of text


def _print_group(group: dict[str, Any], members: bool, only_state: bool) -> None:
    known = [it for it in (group["type"], group["state"], group["assignor"]) if it]
    words = [f"group {group['group']}", *known, plural(len(group["members"]), "member")]
    if group["coordinator"]:
        words.append(f"coordinator {group['coordinator']}")
    if "lag" in group:
        words.append("lag -" if group["lag"] is None else f"lag {group['lag']:,}{_outlook(group)}")
    click.echo(", ".join(words))
    if members:
        print_rows(MEMBERS, [_member_row(member) for member in group["members"]], as_json=False)
    elif group.get("offsets") and not only_state and group["type"] == GroupType.SHARE:
        print_rows(SHARE_OFFSETS, group["offsets"], as_json=False)
    elif group.get("offsets") and not only_state:
        trend = ("trend",) if "trend" in group["offsets"][0] else ()
        print_rows((*OFFSETS, *trend, *OWNER), [_offset_row(offset) for offset in group["offsets"]], as_json=False)


def _outlook(group: dict[str, Any]) -> str:
    """Return the change of the group's lag and the time until the lag is 0, such as ` (-50/s, caught up in 10s)`."""
    changes = [offset["trend"] for offset in group["offsets"] if offset.get("trend") is not None]
    if not changes:
        return ""
    change = sum(changes)
    end = ""
    if group["lag"] and change < 0:
        end = f", caught up in {format_duration(int(group['lag'] / -change * 1000))}"
    return f" ({_rate(change)}{end})"


def _member_row(member: dict[str, Any]) -> dict[str, Any]:
    target = f" -> {' '.join(member['target'])}" if "target" in member else ""
    return member | {
        "partitions": len(member["assignment"]),
        "assignment": " ".join(member["assignment"]) + target,
    }


def _offset_row(offset: dict[str, Any]) -> dict[str, Any]:
    trend = {"trend": _rate(offset["trend"])} if "trend" in offset else {}
    return offset | {"lag_time": format_duration(offset["lag_ms"])} | trend


def _rate(change: float | None) -> str | None:
    return None if change is None else f"{change:+,.1f}/s" if change else "0/s"
