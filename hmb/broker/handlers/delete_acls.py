"""DeleteAcls: delete the ACLs that match filters.

Versions: 0-3; versions 2 and later use the flexible encoding (KIP-482).
Permissions: ALTER on the cluster.
Behavior: for each filter in the request, the response lists the ACLs that the broker has deleted. If the broker
    has no authorizer (`authorizer.class.name`), the result of each filter is the error SECURITY_DISABLED (54).
    The broker does not respond before the deletion is on disk.
Version notes: from version 1 on, a filter contains the pattern type. In version 0, the pattern type is always
    LITERAL.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.security.acls.bindings import check_filter, delete_acls
from hmb.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse

Result = DeleteAclsResponse.DeleteAclsFilterResult


def handle(request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:
    response = DeleteAclsResponse()
    for wanted in request.filters:
        response.filter_results.append(result := Result(error_message=None))
        with error_code_in(result):
            context.broker.check_has_authorizer()
            check_filter(wanted)
            (deleted,) = delete_acls(context.broker.security, [wanted])
            result.matching_acls = [
                Result.DeleteAclsMatchingAcl(
                    error_message=None,
                    resource_type=acl.resource_type,
                    resource_name=acl.resource_name,
                    pattern_type=acl.pattern_type,
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission_type,
                )
                for acl in deleted
            ]
    return response
