"""CreateAcls: create ACLs.

Versions: 0-3; versions 2 and later use the flexible encoding (KIP-482).
Permissions: ALTER on the cluster.
Behavior: each ACL has its own error code. If the broker has no authorizer (`authorizer.class.name`), each ACL gets
    SECURITY_DISABLED (54). An ACL that exists already is not an error. The broker sends the response after the ACLs are
    on disk. The new ACLs apply to the next request of each client.
Version notes: from version 1 on, an ACL contains the pattern type. In version 0, the pattern type is always LITERAL.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.security.acls.bindings import create_acls, new_acl
from hmb.broker.security.metadata_records import AccessControlEntryRecord
from hmb.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse

Result = CreateAclsResponse.AclCreationResult


def handle(request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:
    response = CreateAclsResponse()
    new: list[tuple[AccessControlEntryRecord, Result]] = []
    for each in request.creations:
        response.results.append(result := Result(error_message=None))
        with error_code_in(result):
            context.broker.check_has_authorizer()
            names = (each.resource_name, each.principal, each.host)
            acl = new_acl(
                each.resource_type, each.resource_pattern_type, *names, each.operation, each.permission_type
            )
            new.append((acl, result))
    stored = Result(error_message=None)
    with error_code_in(stored):  # One step for all ACLs, because each step writes the whole file of ACLs.
        create_acls(context.broker.security, [acl for acl, _ in new])
    for _, result in new:
        result.error_code, result.error_message = stored.error_code, stored.error_message
    return response
