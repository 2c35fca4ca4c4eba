"""Contains the methods of `Admin` for ACLs: create, list and delete ACLs (KIP-140, KIP-290).

An ACL permits or denies one operation on a resource to one principal. An `AclBinding` is one ACL. An `AclBindingFilter`
describes ACLs: it matches every ACL whose parts equal the parts of the filter. A part that is None or ANY matches
everything. For example, this filter matches all ACLs of the user alice:
    AclBindingFilter(principal="User:alice")

The methods for ACLs need Kafka 2.0, because in older versions an ACL has no pattern type.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, NamedTuple, TypeVar

from hmb.client.admin.brokers import Brokers
from hmb.client.errors import response_error
from hmb.protocol.enums import AclOperation, AclPatternType, AclPermission, AclResourceType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from hmb.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from hmb.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from hmb.protocol.schema import Request

FIRST_VERSION_WITH_PATTERNS = CreateAclsRequest.first_version("creations.resource_pattern_type")
Kind = TypeVar("Kind", bound=IntEnum)


class AclBinding(NamedTuple):
    """One ACL: it permits or denies one operation on a resource to a principal.

    The ACL applies to connections from `host`. The host `*` means all hosts. The principal `User:*` means all
    users.

    The resource name `*` means all resources of the type. With the pattern type PREFIXED, the ACL applies to all
    resources whose names begin with `resource_name`.
    """

    resource_type: AclResourceType
    resource_name: str
    principal: str
    operation: AclOperation
    permission_type: AclPermission = AclPermission.ALLOW
    host: str = "*"
    pattern_type: AclPatternType = AclPatternType.LITERAL


class AclBindingFilter(NamedTuple):
    """A filter for ACLs. A field that is None or ANY matches every value.

    The pattern type MATCH finds all ACLs that apply to the resource `resource_name`. For the topic "orders-eu", these
    are the ACLs for the name "orders-eu", for a prefix such as "orders-", and for the name `*`.
    """

    resource_type: AclResourceType = AclResourceType.ANY
    resource_name: str | None = None
    principal: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission_type: AclPermission = AclPermission.ANY
    host: str | None = None
    pattern_type: AclPatternType = AclPatternType.ANY


ALL_ACLS = AclBindingFilter()  # a filter that matches every ACL


def create_acls(brokers: Brokers, acls: Iterable[AclBinding]) -> dict[AclBinding, KafkaError | None]:
    """Create ACLs. The result of an ACL is None, or a KafkaError if the broker refuses it.

    The result of an ACL that exists already is None. Needs Kafka 2.0.
    """
    wanted = list(dict.fromkeys(acls))
    creations = [
        CreateAclsRequest.AclCreation(
            resource_type=acl.resource_type,
            resource_name=acl.resource_name,
            resource_pattern_type=acl.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission_type,
        )
        for acl in wanted
    ]
    response: CreateAclsResponse = _send(brokers, CreateAclsRequest(creations=creations))
    return {
        acl: response_error(_described(acl), result.error_code, result.error_message) if result.error_code else None
        for acl, result in zip(wanted, response.results, strict=True)
    }


def describe_acls(brokers: Brokers, wanted: AclBindingFilter = ALL_ACLS) -> list[AclBinding]:
    """Return the ACLs that a filter matches, sorted by their fields. Needs Kafka 2.0."""
    response: DescribeAclsResponse = _send(brokers, DescribeAclsRequest(**_filter_fields(wanted)))
    if response.error_code:
        raise response_error("ACLs", response.error_code, response.error_message)
    return sorted(_binding(resource, acl) for resource in response.resources for acl in resource.acls)


def delete_acls(
    brokers: Brokers, filters: Iterable[AclBindingFilter]
) -> dict[AclBindingFilter, list[AclBinding] | KafkaError]:
    """Delete all ACLs that match at least one filter. For each filter, return the deleted ACLs or a KafkaError.

    An ACL that matches two filters can be in the results of both filters. Needs Kafka 2.0.
    """
    wanted = list(dict.fromkeys(filters))
    request = DeleteAclsRequest(filters=[DeleteAclsRequest.DeleteAclsFilter(**_filter_fields(it)) for it in wanted])
    response: DeleteAclsResponse = _send(brokers, request)
    deleted: dict[AclBindingFilter, list[AclBinding] | KafkaError] = {}
    for each, result in zip(wanted, response.filter_results, strict=True):
        parts = [(it.error_code, it.error_message) for it in result.matching_acls]
        failed = next((part for part in ((result.error_code, result.error_message), *parts) if part[0]), None)
        if failed is None:
            deleted[each] = sorted(_binding(acl, acl) for acl in result.matching_acls)
        else:
            deleted[each] = response_error("ACLs", *failed)
    return deleted


def _send(brokers: Brokers, request: Request) -> Any:
    """Send a request about ACLs. Raises UNSUPPORTED_VERSION if the broker does not know pattern types."""
    version = brokers.cluster.version_of(type(request))
    if version < FIRST_VERSION_WITH_PATTERNS:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "ACLs need Kafka 2.0 or later")
    return brokers.cluster.send(request, version)


def _filter_fields(wanted: AclBindingFilter) -> dict[str, Any]:
    """Return a filter as fields of a request. DescribeAcls and DeleteAcls have the same fields for a filter."""
    return {
        "resource_type_filter": wanted.resource_type,
        "resource_name_filter": wanted.resource_name,
        "pattern_type_filter": wanted.pattern_type,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": wanted.operation,
        "permission_type": wanted.permission_type,
    }


def _binding(resource: Any, acl: Any) -> AclBinding:
    """Make an ACL from two structs of a response: `resource` has the resource, and `acl` has the other fields."""
    return AclBinding(
        _known(AclResourceType, resource.resource_type),
        resource.resource_name,
        acl.principal,
        _known(AclOperation, acl.operation),
        _known(AclPermission, acl.permission_type),
        acl.host,
        _known(AclPatternType, resource.pattern_type),
    )


def _known(kind: type[Kind], number: int) -> Kind:
    """Return the enum member with this number. Raises UNSUPPORTED_VERSION if this client does not know the number."""
    try:
        return kind(number)
    except ValueError:
        what = f"ACLs: the broker sent {kind.__name__} {number}, which this client does not know"
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, what) from None


def _described(acl: AclBinding) -> str:
    return f"ACL of {acl.principal} on {acl.resource_type.name} {acl.resource_name!r}"
