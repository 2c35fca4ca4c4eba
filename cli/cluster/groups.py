"""`hmb groups`: list, describe, reset, delete offsets, remove members, delete."""

from typing import TYPE_CHECKING

import click

from ..completion import complete_topics
from ..shared.common import CliError, print_json
from ..shared.tables import print_table
from .administration import (
    Partitions,
    Target,
    admin_options,
    chosen_partitions,
    group_argument,
    groups_argument,
    raise_failures,
    topic_partitions,
)
from .group_description import describe
from .group_reset import reset

if TYPE_CHECKING:
    from hmb.client.admin import GroupDescription

STATES = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "Stable",
    "Empty",
    "Dead",
    "NotReady",
)
TYPES = ("classic", "consumer", "share", "streams")


@click.group()
def command() -> None:
    """Show groups and their lag; reset and delete them."""


command.add_command(describe)
command.add_command(reset)


@command.command("list")
@click.option("--state", "states", type=click.Choice(STATES, False), multiple=True, help="Only those in this state.")
@click.option("--type", "types", type=click.Choice(TYPES, False), multiple=True, help="Only those of this type.")
@admin_options
def list_(states: tuple[str, ...], types: tuple[str, ...], target: Target, as_json: bool) -> None:
    """List all groups, with their types and states."""
    with target.admin() as admin:
        groups = admin.list_groups(states, types)
    if as_json:
        print_json(
            [
                {"group": it.group_id, "type": it.type, "state": it.state, "protocol_type": it.protocol_type}
                for it in groups
            ]
        )
    elif groups:
        rows = [(it.group_id, it.type, it.state, it.protocol_type) for it in groups]
        print_table(("group", "type", "state", "protocol_type"), rows)


@command.command(short_help="Delete groups that have no members any more.")
@groups_argument
@admin_options
def delete(groups: tuple[str, ...], target: Target, as_json: bool) -> None:
    """Delete GROUPS, which have no members any more, with all that they have committed."""
    from hmb.protocol.errors import ErrorCode, KafkaError

    with target.admin() as admin:
        results = admin.delete_groups(groups)
    for group, error in results.items():
        if error is None and as_json:
            print_json({"group": group, "deleted": True})
        elif error is None:
            click.echo(f"deleted group {group}")
    raise_failures(
        KafkaError(error.code, f"group {group!r} has members: stop them first, or see `hmb groups remove-members`")
        if error.code is ErrorCode.NON_EMPTY_GROUP
        else error
        for group, error in results.items()
        if error
    )


@command.command("delete-offsets", short_help="Forget what a group has committed in a topic.")
@group_argument
@click.option(
    "--topic",
    "topics",
    type=topic_partitions,
    multiple=True,
    required=True,
    metavar="TOPIC[:0,1]",
    help="In this topic, or these partitions of it.",
    shell_complete=complete_topics,
)
@admin_options
def delete_offsets(group: str, topics: Partitions, target: Target, as_json: bool) -> None:
    """Forget what GROUP has committed in a topic that it no longer reads."""
    with target.admin() as admin:
        committed = admin.list_group_offsets(group)
        chosen = [it for it in chosen_partitions(admin, topics) if it in committed]
        if not chosen:
            names = ", ".join(name for name, _ in topics)
            raise CliError(f"group {group!r} has committed nothing in {names}; `hmb groups describe` shows what it has")
        results = admin.delete_group_offsets(group, chosen)
    rows = [(it.topic, it.partition, committed[it].offset) for it, error in results.items() if error is None]
    columns = ("topic", "partition", "deleted_offset")
    if as_json:
        print_json({"group": group, "deleted": [dict(zip(columns, row, strict=True)) for row in sorted(rows)]})
    elif rows:
        print_table(columns, sorted(rows))
    raise_failures(error for error in results.values() if error)


@command.command("remove-members", short_help="Send members of a group away.")
@group_argument
@click.option("--member", "member_ids", multiple=True, metavar="ID", help="The member of this id.")
@click.option("--instance", "instance_ids", multiple=True, metavar="ID", help="The member of this group.instance.id.")
@click.option("--all", "everybody", is_flag=True, help="All members.")
@admin_options
def remove_members(
    group: str,
    member_ids: tuple[str, ...],
    instance_ids: tuple[str, ...],
    everybody: bool,
    target: Target,
    as_json: bool,
) -> None:
    """Send members of GROUP away: those that died and block it, or static ones that will not come back.

    A member that still runs joins again.
    """
    from hmb.client.admin import raised

    if everybody == bool(member_ids or instance_ids):
        raise click.UsageError("say who: --member and --instance, or --all")
    with target.admin() as admin:
        described = raised(admin.describe_groups([group])[group])
        if everybody:
            member_ids = tuple(it.member_id for it in described.members if it.group_instance_id is None)
            instance_ids = tuple(it.group_instance_id for it in described.members if it.group_instance_id is not None)
        _check_members(described, member_ids, instance_ids)
        results = admin.remove_members(group, member_ids=member_ids, group_instance_ids=instance_ids)
    for member, error in results.items():
        if error is None and as_json:
            print_json({"group": group, "member": member, "removed": True})
        elif error is None:
            click.echo(f"removed {member}")
    raise_failures(error for error in results.values() if error)


def _check_members(group: "GroupDescription", member_ids: tuple[str, ...], instance_ids: tuple[str, ...]) -> None:
    for what, wanted, known in (
        ("member", member_ids, {member.member_id for member in group.members}),
        ("instance", instance_ids, {member.group_instance_id for member in group.members}),
    ):
        for name in wanted:
            if name not in known:
                hint = f"`hmb groups describe {group.group_id} --members` shows all of them"
                raise CliError(f"group {group.group_id!r} has no {what} {name!r}; {hint}")
    if not group.members:
        raise CliError(f"group {group.group_id!r} has no members")
