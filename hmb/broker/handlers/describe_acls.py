"""DescribeAcls: list the ACLs that match a filter.

Versions: 0-3; versions 2 and later use the flexible encoding (KIP-482).
Permissions: DESCRIBE on the cluster.
Behavior: if the broker has no authorizer (`authorizer.class.name`), the response has the error SECURITY_DISABLED (54).
Version notes: from version 1 on, a filter contains the pattern type. In version 0, the pattern type is always LITERAL.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.security.acls.bindings import check_filter, matching
from hmb.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from hmb.protocol.schema import Struct

Resource = DescribeAclsResponse.DescribeAclsResource


def handle(request: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:
    response = DescribeAclsResponse(error_message=None)
    with error_code_in(response):
        context.broker.check_has_authorizer()
        check_filter(request)
        resources: dict[tuple[int, int, str], Struct] = {}
        for acl in matching(context.broker.security.state.acls.values(), request):
            key = (acl.resource_type, acl.pattern_type, acl.resource_name)
            resource = resources.get(key)
            if not isinstance(resource, Resource):
                resource = resources[key] = Resource(
                    resource_type=acl.resource_type, pattern_type=acl.pattern_type, resource_name=acl.resource_name
                )
                response.resources.append(resource)
            resource.acls.append(
                Resource.AclDescription(
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission_type,
                )
            )
    return response
