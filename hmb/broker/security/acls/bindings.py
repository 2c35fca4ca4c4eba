"""Creates, finds and deletes ACLs.

A filter selects ACLs. Each part of a filter is a condition. The values ANY and null mean that there is no
condition. If the pattern type is MATCH, the filter selects all ACLs that apply to the resource with the given
name. These are the ACLs for this name, for a prefix of this name, and for `*`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from hmb.broker.security.acls.authorizer import EVERYTHING
from hmb.broker.security.metadata_records import AccessControlEntryRecord
from hmb.broker.security.store import SecurityState, SecurityStore
from hmb.protocol.enums import CLUSTER_NAME, AclOperation, AclPatternType, AclPermission, AclResourceType
from hmb.protocol.errors import ErrorCode, KafkaError

MAX_ACLS = 10_000  # a broker stores at most this number of ACLs
LONGEST_ACL_TEXT = 1000  # characters in a principal, in a host, or in the name of a resource


class AclFilter(Protocol):
    """A filter in a DescribeAcls or DeleteAcls request. It selects the ACLs to return or to delete."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def check_filter(wanted: AclFilter) -> None:
    """Raise INVALID_REQUEST if a filter contains an unknown numeric code, for example resource type 99."""
    numbers = (
        (AclResourceType, wanted.resource_type_filter),
        (AclPatternType, wanted.pattern_type_filter),
        (AclOperation, wanted.operation),
        (AclPermission, wanted.permission_type),
    )
    for kind, number in numbers:
        if number not in list(kind):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{kind.__name__} {number} is unknown")


def matching(acls: Iterable[AccessControlEntryRecord], wanted: AclFilter) -> list[AccessControlEntryRecord]:
    """Return the ACLs that a filter matches."""
    return [acl for acl in acls if _matches_filter(acl, wanted)]


def _matches_filter(acl: AccessControlEntryRecord, wanted: AclFilter) -> bool:
    return (
        wanted.resource_type_filter in (AclResourceType.ANY, acl.resource_type)
        and wanted.operation in (AclOperation.ANY, acl.operation)
        and wanted.permission_type in (AclPermission.ANY, acl.permission_type)
        and wanted.principal_filter in (None, acl.principal)
        and wanted.host_filter in (None, acl.host)
        and _matches_name(acl, wanted)
    )


def _matches_name(acl: AccessControlEntryRecord, wanted: AclFilter) -> bool:
    name, pattern = wanted.resource_name_filter, wanted.pattern_type_filter
    if pattern not in (AclPatternType.ANY, AclPatternType.MATCH, acl.pattern_type):
        return False
    if name is None or name == acl.resource_name:
        return True
    if pattern != AclPatternType.MATCH:
        return False
    if acl.pattern_type == AclPatternType.PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name == EVERYTHING


def new_acl(
    resource_type: int,
    pattern_type: int,
    resource_name: str,
    principal: str,
    host: str,
    operation: int,
    permission_type: int,
) -> AccessControlEntryRecord:
    """Return a new ACL. Raises INVALID_REQUEST if a part of the ACL is unknown, malformed, empty or too long."""
    acl = AccessControlEntryRecord(
        id=uuid.uuid4(),
        resource_type=resource_type,
        resource_name=resource_name,
        pattern_type=pattern_type,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission_type,
    )
    if (problem := _problem(acl)) is not None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, problem)
    return acl


def _problem(acl: AccessControlEntryRecord) -> str | None:
    """Return the reason why an ACL is not valid, or None if the ACL is valid."""
    kind, _, name = acl.principal.partition(":")
    if acl.resource_type not in list(AclResourceType) or acl.resource_type == AclResourceType.ANY:
        return f"the resource type {acl.resource_type} is unknown"
    if acl.pattern_type not in (AclPatternType.LITERAL, AclPatternType.PREFIXED):
        return f"the pattern type {acl.pattern_type} is not LITERAL or PREFIXED"
    if acl.operation not in list(AclOperation) or acl.operation == AclOperation.ANY:
        return f"the operation {acl.operation} is unknown"
    if acl.permission_type not in (AclPermission.DENY, AclPermission.ALLOW):
        return f"the permission type {acl.permission_type} is not DENY or ALLOW"
    if not kind or not name:
        return f"the principal {acl.principal[:100]!r} does not have the form User:name"
    if not acl.resource_name or not acl.host:
        return "the name of the resource or the host is empty"
    if acl.resource_type == AclResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        return f"the only name of a resource of the type CLUSTER is {CLUSTER_NAME}"
    if max(map(len, (acl.resource_name, acl.principal, acl.host))) > LONGEST_ACL_TEXT:
        return f"a name has more than {LONGEST_ACL_TEXT} characters"
    return None


def create_acls(store: SecurityStore, new: Sequence[AccessControlEntryRecord]) -> None:
    """Store new ACLs on disk. An ACL that exists already stays as it is. Raises INVALID_REQUEST and OSError."""

    def compute(state: SecurityState) -> SecurityState:
        known = {_content(acl) for acl in state.acls.values()}
        acls = dict(state.acls)
        for acl in new:
            if _content(acl) not in known:
                known.add(_content(acl))
                acls[acl.id] = acl
        if len(acls) > max(MAX_ACLS, len(state.acls)):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"a broker has at most {MAX_ACLS} ACLs")
        return replace(state, acls=acls) if len(acls) > len(state.acls) else state

    store.change(compute)


def delete_acls(store: SecurityStore, filters: Sequence[AclFilter]) -> list[list[AccessControlEntryRecord]]:
    """Delete the ACLs that the filters match. Return the deleted ACLs of each filter. Raises OSError."""
    deleted: list[list[AccessControlEntryRecord]] = []

    def compute(state: SecurityState) -> SecurityState:
        deleted[:] = [matching(state.acls.values(), wanted) for wanted in filters]
        gone = {acl.id for found in deleted for acl in found}
        acls = {id: acl for id, acl in state.acls.items() if id not in gone}
        return replace(state, acls=acls) if gone else state

    store.change(compute)
    return deleted


def _content(acl: AccessControlEntryRecord) -> tuple[object, ...]:
    return tuple(getattr(acl, name) for name in acl.fields if name != "id")
