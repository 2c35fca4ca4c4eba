"""`hmb acls`: list, add and remove ACLs, with the options of kafka-acls."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from hmb.protocol.enums import AclPatternType

from ..shared.client_options import ClientConfig, cluster_options
from ..shared.errors import NOT_FOUND, CliError
from ..shared.output import plural, print_result, print_rows
from ..shared.subjects import raise_failures
from .acl_options import AclResources, AclRights, Op, principal, resource_options, right_options

if TYPE_CHECKING:
    from hmb.client.admin import AclBinding, AclBindingFilter

COLUMNS = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission_type")
RESOURCES = "--topic, --group, --transactional-id or --cluster"


@click.group()
def command() -> None:
    """List, add and remove ACLs: who may do what.

    The broker needs an authorizer: the setting authorizer.class.name.
    """


@command.command("list")
@resource_options(filters=True)
@click.option(
    "--principal", "principals", type=principal, multiple=True, metavar="User:NAME",
    help="Show only ACLs of this principal.",
)  # fmt: skip
@cluster_options
def list_(resources: AclResources, principals: tuple[str, ...], client: ClientConfig, as_json: bool) -> None:
    """List the ACLs of the named resources. Without resources, list all ACLs."""
    found: set[AclBinding] = set()
    with client.admin() as admin:
        for each in _resource_filters(resources):
            found.update(admin.describe_acls(each))
    shown = sorted(acl for acl in found if not principals or acl.principal in principals)
    print_rows(COLUMNS, [_fields(acl) for acl in shown], as_json)


@command.command()
@resource_options(filters=False)
@right_options
@cluster_options
def add(resources: AclResources, rights: AclRights, client: ClientConfig, as_json: bool) -> None:
    """Add ACLs. An ACL that exists already stays as it is."""
    from hmb.client.admin import AclBinding

    if not resources.named:
        raise click.UsageError(f"a resource is required; use {RESOURCES}")
    if not rights.allowed and not rights.denied:
        raise click.UsageError("a principal is required; use --allow-principal or --deny-principal")
    rights.check(resources)
    new = [
        AclBinding(*resource, entry.principal, entry.operation, entry.permission, entry.host, pattern)
        for resource, pattern, entry in rights.entries(resources)
    ]
    with client.admin() as admin:
        results = admin.create_acls(new)
    for acl, error in results.items():
        if error is None:
            print_result(_fields(acl) | {"added": True}, f"added {_sentence(acl)}", as_json)
    raise_failures(dict.fromkeys(error for error in results.values() if error))


@command.command()
@resource_options(filters=True)
@right_options
@click.option("--force", is_flag=True, help="Remove the ACLs without a question.")
@cluster_options
def remove(resources: AclResources, rights: AclRights, force: bool, client: ClientConfig, as_json: bool) -> None:
    """Remove ACLs. The command shows them and asks before it removes them.

    Without a principal, the command removes the ACLs of all principals on the named resources.
    """
    if not resources.named:
        raise click.UsageError(f"a resource is required; use {RESOURCES}")
    rights.check(resources)
    filters = _filters(resources, rights)
    with client.admin() as admin:
        if not force:
            _confirm(sorted({acl for each in filters for acl in admin.describe_acls(each)}))
        results = admin.delete_acls(filters)
    failures = [result for result in results.values() if not isinstance(result, list)]
    removed = sorted({acl for result in results.values() if isinstance(result, list) for acl in result})
    for acl in removed:
        print_result(_fields(acl) | {"removed": True}, f"removed {_sentence(acl)}", as_json)
    raise_failures(failures)
    if not removed:
        raise _no_match()


def _filters(resources: AclResources, rights: AclRights) -> list[AclBindingFilter]:
    """Return the filters for the ACLs to remove.

    If the options name principals, the filters match exactly the ACLs that `hmb acls add` adds with the same
    options.

    If the options name no principal, the filters match the ACLs of all principals on the named resources. If the
    options also name no operation, the filters match all operations.
    """
    from hmb.client.admin import AclBindingFilter

    if rights.allowed or rights.denied:
        return [
            AclBindingFilter(*resource, entry.principal, entry.operation, entry.permission, entry.host, pattern)
            for resource, pattern, entry in rights.entries(resources)
        ]
    return [
        each._replace(operation=operation)
        for each in _resource_filters(resources)
        for operation in rights.operations or (Op.ANY,)
    ]


def _resource_filters(resources: AclResources) -> Sequence[AclBindingFilter]:
    """Return one filter for each resource that the user has named.

    If the user has named no resource, return one filter that matches all ACLs.
    """
    from hmb.client.admin import AclBindingFilter

    if not resources.named:
        return [AclBindingFilter()]
    return [AclBindingFilter(*resource, pattern_type=resources.pattern) for resource in resources.named]


def _confirm(acls: Sequence[AclBinding]) -> None:
    """Show ACLs and ask whether to remove them. Raises CliError if the user does not agree."""
    if not acls:
        raise _no_match()
    for acl in acls:
        click.echo(_sentence(acl), err=True)
    click.echo(f"Remove {plural(len(acls), 'ACL')}? [y/N] ", err=True, nl=False)
    answer = sys.stdin.readline()
    if not sys.stdin.isatty():  # Without a terminal, no Enter key has ended the line of the question.
        click.echo(err=True)
    if answer.strip().lower() not in ("y", "yes"):
        raise CliError("removed nothing; answer y to remove the ACLs, or add --force")


def _no_match() -> CliError:
    return CliError("no ACL matches these options; `hmb acls list` shows all ACLs", NOT_FOUND)


def _fields(acl: AclBinding) -> dict[str, Any]:
    """Return the columns of an ACL. A member of an enum is replaced by its name, for example `ALLOW`."""
    return {name: getattr(value, "name", value) for name, value in ((name, getattr(acl, name)) for name in COLUMNS)}


def _sentence(acl: AclBinding) -> str:
    """Return an ACL as text: `ALLOW User:alice from *: READ on TOPIC orders`."""
    start = "names that begin with " if acl.pattern_type == AclPatternType.PREFIXED else ""
    resource = f"{acl.resource_type.name} {start}{acl.resource_name}"
    return f"{acl.permission_type.name} {acl.principal} from {acl.host}: {acl.operation.name} on {resource}"
