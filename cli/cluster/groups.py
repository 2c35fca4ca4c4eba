"""`hmb groups`: list, describe and delete groups, reset or delete their offsets, and remove their members."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hmb.protocol.enums import GroupState, GroupType

from ..shared.client_options import ClientConfig, cluster_options
from ..shared.completion import complete_topics
from ..shared.errors import CliError
from ..shared.output import print_result, print_rows
from ..shared.parameters import topic_partitions
from ..shared.subjects import Partitions, chosen_partitions, group_argument, groups_argument, raise_failures
from .group_description import describe
from .group_reset import reset

if TYPE_CHECKING:
    from hmb.client import Admin, TopicPartition
    from hmb.client.admin import GroupDescription

STATES = [state.value for state in GroupState]
TYPES = [group_type.value for group_type in GroupType]
LISTED = ("group", "type", "state", "protocol_type")
DELETED_OFFSETS = ("topic", "partition", "deleted_offset")


@click.group()
def command() -> None:
    """Show groups and their lag, reset their offsets, and delete groups."""


command.add_command(describe)
command.add_command(reset)


@command.command("list")
@click.option(
    "--state", "states", type=click.Choice(STATES, False), multiple=True, help="List only groups in this state."
)
@click.option("--type", "types", type=click.Choice(TYPES, False), multiple=True, help="List only groups of this type.")
@cluster_options
def list_(states: tuple[str, ...], types: tuple[str, ...], client: ClientConfig, as_json: bool) -> None:
    """List all groups with their types and states."""
    with client.admin() as admin:
        groups = admin.list_groups(states, types)
    rows = [
        {"group": it.group_id, "type": it.type, "state": it.state, "protocol_type": it.protocol_type} for it in groups
    ]
    print_rows(LISTED, rows, as_json)


@command.command()
@groups_argument
@cluster_options
def delete(groups: tuple[str, ...], client: ClientConfig, as_json: bool) -> None:
    """Delete GROUPS and all their offsets. A group with members cannot be deleted."""
    from hmb.protocol.errors import ErrorCode, KafkaError

    with client.admin() as admin:
        results = admin.delete_groups(groups)
    for group, error in results.items():
        if error is None:
            print_result({"group": group, "deleted": True}, f"deleted group {group}", as_json)
    raise_failures(
        KafkaError(error.code, f"group {group!r} has members: stop them first, or see `hmb groups remove-members`")
        if error.code is ErrorCode.NON_EMPTY_GROUP
        else error
        for group, error in results.items()
        if error
    )


@command.command("delete-offsets")
@group_argument
@click.option(
    "--topic", "topics", type=topic_partitions, multiple=True, required=True, metavar="TOPIC[:0,1]",
    help="Delete the offsets in this topic, or only in some of its partitions.", shell_complete=complete_topics
)
@cluster_options
def delete_offsets(group: str, topics: Partitions, client: ClientConfig, as_json: bool) -> None:
    """Delete the offsets that GROUP has committed in a topic.

    Before you use the command, stop all consumers of GROUP that read the topic.

    A share group has a start offset for each partition instead of a committed offset. To delete start offsets, first
    stop all members of the group. The broker deletes the start offsets of all partitions of a topic together, so
    write TOPIC without partition numbers.
    """
    from hmb.client.admin import raised

    with client.admin() as admin:
        is_share = raised(admin.describe_groups([group])[group]).type == GroupType.SHARE
        old = _share_offsets(admin, group, topics) if is_share else _committed_offsets(admin, group)
        chosen = [it for it in chosen_partitions(admin, topics) if it in old]
        if not chosen:
            names = ", ".join(name for name, _ in topics)
            kind = "start" if is_share else "committed"
            hint = f"`hmb groups describe` shows its {kind} offsets"
            raise CliError(f"group {group!r} has no {kind} offsets in {names}; {hint}")
        if is_share:
            by_topic = admin.delete_share_offsets(group, dict.fromkeys(it.topic for it in chosen))
            results = {it: by_topic[it.topic] for it in chosen}
        else:
            results = admin.delete_group_offsets(group, chosen)
    rows = [
        {"group": group, "topic": it.topic, "partition": it.partition, "deleted_offset": old[it]}
        for it in sorted(results)
        if results[it] is None
    ]
    print_rows(DELETED_OFFSETS, rows, as_json)
    raise_failures(error for error in results.values() if error)


def _committed_offsets(admin: Admin, group: str) -> dict[TopicPartition, int | None]:
    return {partition: committed.offset for partition, committed in admin.list_group_offsets(group).items()}


def _share_offsets(admin: Admin, group: str, topics: Partitions) -> dict[TopicPartition, int | None]:
    """Return the start offsets of a share group: one offset for each partition.

    The command `delete-offsets` shows these offsets after it has deleted them. The broker can delete the start
    offsets only for a whole topic. If `topics` contains single partitions of a topic, this function therefore
    raises CliError.
    """
    for topic, numbers in topics:
        if numbers is not None:
            what = f"group {group!r} is a share group, and its offsets are deleted for whole topics: write {topic}"
            raise CliError(what)
    return {partition: share.start_offset for partition, share in admin.list_share_offsets(group).items()}


@command.command("remove-members")
@group_argument
@click.option("--member", "member_ids", multiple=True, metavar="ID", help="Remove the member with this member id.")
@click.option(
    "--instance", "instance_ids", multiple=True, metavar="ID", help="Remove the member with this group.instance.id."
)
@click.option("--all", "everybody", is_flag=True, help="Remove all members.")
@cluster_options
def remove_members(
    group: str,
    member_ids: tuple[str, ...],
    instance_ids: tuple[str, ...],
    everybody: bool,
    client: ClientConfig,
    as_json: bool,
) -> None:
    """Remove members from GROUP: members that have crashed, or static members that will not return.

    If the program of a removed member is still running, the member joins the group again.
    """
    from hmb.client.admin import raised

    if everybody == bool(member_ids or instance_ids):
        raise click.UsageError("name the members with --member and --instance, or choose --all")
    with client.admin() as admin:
        described = raised(admin.describe_groups([group])[group])
        if everybody:
            member_ids = tuple(it.member_id for it in described.members if it.group_instance_id is None)
            instance_ids = tuple(it.group_instance_id for it in described.members if it.group_instance_id is not None)
        _check_members(described, member_ids, instance_ids)
        results = admin.remove_members(group, member_ids=member_ids, group_instance_ids=instance_ids)
    for member, error in results.items():
        if error is None:
            key = "group_instance_id" if member in instance_ids else "member_id"
            print_result({"group": group, key: member, "removed": True}, f"removed {member}", as_json)
    raise_failures(error for error in results.values() if error)


def _check_members(group: GroupDescription, member_ids: tuple[str, ...], instance_ids: tuple[str, ...]) -> None:
    """Raise CliError if the broker cannot remove these members.

    There are three possible reasons:

    - The group is a share group or a streams group. No API removes the members of such a group.
    - The group has no member with one of the given ids.
    - The group has no members at all.
    """
    if group.type in (GroupType.SHARE, GroupType.STREAMS):
        what = f"group {group.group_id!r} is a {group.type} group, and no API removes its members: stop its clients"
        raise CliError(what)
    for kind, wanted, known in (
        ("member", member_ids, {member.member_id for member in group.members}),
        ("instance", instance_ids, {member.group_instance_id for member in group.members}),
    ):
        for name in wanted:
            if name not in known:
                hint = f"`hmb groups describe {group.group_id} --members` shows all members"
                raise CliError(f"group {group.group_id!r} has no {kind} {name!r}; {hint}")
    if not group.members:
        raise CliError(f"group {group.group_id!r} has no members")
