"""CreateAcls (30): create ACLs (KIP-140, KIP-290)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class CreateAclsRequest(Request, api_key=ApiKey.CREATE_ACLS, versions="0-3", flexible="2+"):
    """The ACLs to create.

    Version 1 adds the pattern type: an ACL applies to one name, or to all names with a prefix. Version 2 uses the
    flexible encoding (KIP-482). Version 3 adds the resource type USER.
    """

    class AclCreation(Struct):
        resource_type:         int = t.int8()
        resource_name:         str = t.string()
        resource_pattern_type: int = t.int8("1+", default=3)
        principal:             str = t.string()
        host:                  str = t.string()
        operation:             int = t.int8()
        permission_type:       int = t.int8()

    creations: list[AclCreation] = t.array(AclCreation)


class CreateAclsResponse(Response, api_key=ApiKey.CREATE_ACLS, versions="0-3", flexible="2+"):
    """An error code for each ACL, in the order of the request. Version 2 uses the flexible encoding (KIP-482)."""

    class AclCreationResult(Struct):
        error_code:    int        = t.int16()
        error_message: str | None = t.string(nullable="0+")

    throttle_time_ms: int                     = t.int32()
    results:          list[AclCreationResult] = t.array(AclCreationResult)
