"""The options of `hmb acls` for resources, principals and operations, named like the options of kafka-acls.

The decorator `resource_options` adds the options that name resources, and passes them to the command as the argument
`resources: AclResources`. The decorator `right_options` adds the options for principals, hosts and operations, and
passes them as `rights: AclRights`. Together, the options describe one ACL for each combination of a resource, a
principal, a host and an operation. For example, these options name two topics, one principal and one operation:
    --topic a --topic b --allow-principal User:alice --operation READ     2 ACLs

The options `--producer` and `--consumer` are short forms. They stand for all operations that a producer or a
consumer needs. The tables PRODUCER and CONSUMER contain these operations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, NamedTuple, TypeVar

import click

from hmb.protocol.enums import CLUSTER_NAME, AclOperation, AclPatternType, AclPermission, AclResourceType

Command = Callable[..., Any]
Member = TypeVar("Member", bound=IntEnum)
Op, Kind = AclOperation, AclResourceType
EVERY_HOST = "*"

OPERATIONS = {  # maps each type of resource to the operations that its ACLs can contain, in addition to ALL
    Kind.TOPIC: (
        *(Op.READ, Op.WRITE, Op.CREATE, Op.DELETE, Op.ALTER, Op.DESCRIBE),
        *(Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS),
    ),
    Kind.GROUP: (Op.READ, Op.DELETE, Op.DESCRIBE, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS),
    Kind.CLUSTER: (
        *(Op.CREATE, Op.ALTER, Op.DESCRIBE, Op.CLUSTER_ACTION),
        *(Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS, Op.IDEMPOTENT_WRITE),
    ),
    Kind.TRANSACTIONAL_ID: (Op.WRITE, Op.DESCRIBE, Op.TWO_PHASE_COMMIT),
}
PRODUCER = {
    Kind.TOPIC: (Op.WRITE, Op.DESCRIBE, Op.CREATE),
    Kind.TRANSACTIONAL_ID: (Op.WRITE, Op.DESCRIBE),
}
CONSUMER = {Kind.TOPIC: (Op.READ, Op.DESCRIBE), Kind.GROUP: (Op.READ,)}


class NamedResource(NamedTuple):
    """A resource, for example the topic `orders`."""

    type: AclResourceType
    name: str


class AclEntry(NamedTuple):
    """An ACL without its resource (for example a topic): who may, or may not, run which operation from which host."""

    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission


@dataclass(frozen=True)
class AclResources:
    """The resources that the command line names, for example the topic `orders`.

    `pattern` is the pattern type of all these names. For example, LITERAL means only the topic `orders`. PREFIXED means
    all topics whose names begin with `orders`.
    """

    named: tuple[NamedResource, ...]
    pattern: AclPatternType

    def names(self, kind: AclResourceType) -> bool:
        """Return whether the command line names a resource of this type."""
        return any(each.type == kind for each in self.named)


@dataclass(frozen=True)
class AclRights:
    """The principals, the hosts and the operations that the options name."""

    allowed: tuple[str, ...]
    denied: tuple[str, ...]
    allowed_hosts: tuple[str, ...]
    denied_hosts: tuple[str, ...]
    operations: tuple[AclOperation, ...]
    producer: bool
    consumer: bool
    idempotent: bool

    def check(self, resources: AclResources) -> None:
        """Raise click.UsageError if the options contradict each other or do not fit the resources."""
        for hosts, principals, word in (
            (self.allowed_hosts, self.allowed, "allow"),
            (self.denied_hosts, self.denied, "deny"),
        ):
            if hosts and not principals:
                raise click.UsageError(f"--{word}-host needs --{word}-principal")
        if self.producer or self.consumer:
            self._check_short_form(resources)
        elif self.idempotent:
            raise click.UsageError("--idempotent needs --producer")
        for kind in dict.fromkeys(each.type for each in resources.named):
            for operation in self.operations:
                if operation not in (Op.ALL, *OPERATIONS[kind]):
                    allowed = ", ".join(each.name for each in (Op.ALL, *OPERATIONS[kind]))
                    raise click.UsageError(f"an ACL of a {kind.name} cannot contain {operation.name}; use {allowed}")

    def _check_short_form(self, resources: AclResources) -> None:
        form = "--producer" if self.producer else "--consumer"
        if self.operations or self.denied:
            raise click.UsageError(f"{form} cannot be combined with --operation or --deny-principal")
        if not self.allowed:
            raise click.UsageError(f"{form} needs --allow-principal")
        if not resources.names(Kind.TOPIC):
            raise click.UsageError(f"{form} needs --topic")
        if self.consumer != resources.names(Kind.GROUP):
            raise click.UsageError(
                "--consumer needs --group" if self.consumer else "--producer cannot be combined with --group"
            )
        if resources.names(Kind.CLUSTER):
            hint = "to permit IDEMPOTENT_WRITE on the cluster, use --producer with --idempotent"
            raise click.UsageError(f"{form} cannot be combined with --cluster; {hint}")
        if resources.names(Kind.TRANSACTIONAL_ID) and not self.producer:
            raise click.UsageError("--consumer cannot be combined with --transactional-id")
        if self.idempotent and not self.producer:
            raise click.UsageError("--idempotent needs --producer")

    def entries(self, resources: AclResources) -> Iterator[tuple[NamedResource, AclPatternType, AclEntry]]:
        """Yield each ACL that the options describe, as three values: its resource, its pattern type and its `AclEntry`.

        An ACL needs a principal, so the method yields nothing if the options name no principal.
        """
        for resource in resources.named:
            for operation in dict.fromkeys(self._operations(resource.type)):
                for entry in self._of_principals(operation):
                    yield resource, resources.pattern, entry
        if self.idempotent:
            for entry in self._of_principals(Op.IDEMPOTENT_WRITE):
                yield NamedResource(Kind.CLUSTER, CLUSTER_NAME), AclPatternType.LITERAL, entry

    def _operations(self, kind: AclResourceType) -> Iterable[AclOperation]:
        if not (self.producer or self.consumer):
            return self.operations or (Op.ALL,)
        produced = PRODUCER.get(kind, ()) if self.producer else ()
        return (*produced, *(CONSUMER.get(kind, ()) if self.consumer else ()))

    def _of_principals(self, operation: AclOperation) -> Iterator[AclEntry]:
        for principals, hosts, permission in (
            (self.allowed, self.allowed_hosts, AclPermission.ALLOW),
            (self.denied, self.denied_hosts, AclPermission.DENY),
        ):
            for principal in principals:
                for host in hosts or (EVERY_HOST,):
                    yield AclEntry(principal, host, operation, permission)


def principal(text: str) -> str:
    """Return the text if it has the form of a principal, such as `User:alice`. Raises click.BadParameter."""
    kind, _, name = text.partition(":")
    if not kind or not name:
        raise click.BadParameter(f"{text!r} is not a principal; write User:alice, or User:* for all users")
    return text


def not_empty(text: str) -> str:
    """Return the text if it is not empty. Raises click.BadParameter."""
    if not text:
        raise click.BadParameter("the name is empty")
    return text


def member_of(kind: type[Member], excluded: Iterable[Member] = ()) -> Callable[[str], Member]:
    """Return a function that converts a name to a member of the enum `kind`, for example `AclOperation`.

    The returned function ignores case, `_` and `-`. It accepts `DESCRIBE_CONFIGS`, and kafka-acls's spelling
    `DescribeConfigs`.
    """
    members = {each.name.replace("_", ""): each for each in kind if each not in tuple(excluded)}

    def parse(text: str) -> Member:
        found = members.get(text.upper().replace("_", "").replace("-", ""))
        if found is None:
            names = ", ".join(each.name for each in members.values())
            raise click.BadParameter(f"{text!r} is none of {names}")
        return found

    return parse


RESOURCE_OPTIONS = (
    click.option("--topic", "topics", type=not_empty, multiple=True, help="A topic; * means all topics."),
    click.option("--group", "groups", type=not_empty, multiple=True, help="A group; * means all groups."),
    click.option("--transactional-id", "ids", type=not_empty, multiple=True, help="A transactional id; * means all."),
    click.option("--cluster", "cluster", is_flag=True, help="The cluster itself. It can have ACLs, as a topic can."),
)
RIGHT_OPTIONS = (
    click.option("--allow-principal", "allowed", type=principal, multiple=True, metavar="User:NAME",
        help="A principal that may do the operations; User:* means all users."),
    click.option("--deny-principal", "denied", type=principal, multiple=True, metavar="User:NAME",
        help="A principal that must not do the operations. DENY takes precedence over ALLOW."),
    click.option("--allow-host", "allowed_hosts", type=not_empty, multiple=True, metavar="ADDRESS",
        help="An IP address from which allowed principals may do the operations.  [default: * (all addresses)]"),
    click.option("--deny-host", "denied_hosts", type=not_empty, multiple=True, metavar="ADDRESS",
        help="An IP address from which denied principals must not do the operations.  [default: * (all addresses)]"),
    click.option("--operation", "operations", type=member_of(AclOperation, (Op.ANY,)), multiple=True, metavar="NAME",
        help="An operation, for example READ, WRITE, CREATE, DESCRIBE.  [default: ALL]"),
    click.option("--producer", is_flag=True,
        help="All operations that a producer needs for --topic and --transactional-id."),
    click.option("--consumer", is_flag=True, help="All operations that a consumer needs for --topic and --group."),
    click.option("--idempotent", is_flag=True, help="With --producer: allow also IDEMPOTENT_WRITE on the cluster."),
)  # fmt: skip


def _with_options(options: Iterable[Callable[[Command], Command]], command: Command) -> Command:
    """Add click options to a command, so that `--help` shows them in the order of `options`."""
    for option in reversed(tuple(options)):
        command = option(command)
    return command


def resource_options(*, filters: bool) -> Callable[[Command], Command]:
    """Return a decorator that adds the options for resources to a command that takes `resources: AclResources`.

    If `filters` is true, the command searches for ACLs, and accepts all pattern types. If `filters` is false, the
    command creates ACLs. It then refuses the pattern types ANY and MATCH, because they have a meaning only in a
    search.
    """
    patterns = member_of(AclPatternType, () if filters else (AclPatternType.ANY, AclPatternType.MATCH))
    words = (
        "literal, prefixed, any (both types) or match (all ACLs that apply to a resource with this name)"
        if filters
        else "literal (the whole name) or prefixed (the beginning of the name)"
    )
    pattern_option = click.option(
        "--resource-pattern-type", "pattern", type=patterns, default="literal", show_default=True, metavar="TYPE",
        help=f"The type of the names in --topic, --group and --transactional-id: {words}.",
    )  # fmt: skip

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(
            *arguments: Any,
            topics: tuple[str, ...],
            groups: tuple[str, ...],
            ids: tuple[str, ...],
            cluster: bool,
            pattern: AclPatternType,
            **options: Any,
        ) -> Any:
            if cluster and pattern == AclPatternType.PREFIXED:
                raise click.UsageError("--cluster cannot be combined with --resource-pattern-type=prefixed")
            names = {Kind.TOPIC: topics, Kind.GROUP: groups, Kind.TRANSACTIONAL_ID: ids}
            names[Kind.CLUSTER] = (CLUSTER_NAME,) if cluster else ()
            named = tuple(NamedResource(kind, name) for kind, each in names.items() for name in dict.fromkeys(each))
            return command(*arguments, resources=AclResources(named, pattern), **options)

        return _with_options((*RESOURCE_OPTIONS, pattern_option), run)

    return decorate


def right_options(command: Command) -> Command:
    """Add the options for principals, hosts and operations to a command that takes `rights: AclRights`.

    The parameters of the options and the fields of `AclRights` have the same names.
    """

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        rights = AclRights(**{field.name: options.pop(field.name) for field in fields(AclRights)})
        return command(*arguments, rights=rights, **options)

    return _with_options(RIGHT_OPTIONS, run)
