"""DescribeAcls (29): list the ACLs that match a filter (KIP-140, KIP-290)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class DescribeAclsRequest(Request, api_key=ApiKey.DESCRIBE_ACLS, versions="0-3", flexible="2+"):
    """A filter for ACLs. If the filter for a name is null, every name matches.

    Version 1 adds the pattern type: an ACL can apply to one name, or to all names that begin with a prefix. Version
    2 uses the flexible encoding (KIP-482). Version 3 adds the resource type USER.
    """

    resource_type_filter: int        = t.int8()
    resource_name_filter: str | None = t.string(nullable="0+")
    pattern_type_filter:  int        = t.int8("1+", default=3)
    principal_filter:     str | None = t.string(nullable="0+")
    host_filter:          str | None = t.string(nullable="0+")
    operation:            int        = t.int8()
    permission_type:      int        = t.int8()


class DescribeAclsResponse(Response, api_key=ApiKey.DESCRIBE_ACLS, versions="0-3", flexible="2+"):
    """The ACLs that match the filter, grouped by resource.

    Version 1 adds the pattern type: an ACL can apply to one name, or to all names that begin with a prefix. Version
    2 uses the flexible encoding (KIP-482). Version 3 adds the resource type USER.
    """

    class DescribeAclsResource(Struct):
        class AclDescription(Struct):
            principal:       str = t.string()
            host:            str = t.string()
            operation:       int = t.int8()
            permission_type: int = t.int8()

        resource_type: int                  = t.int8()
        resource_name: str                  = t.string()
        pattern_type:  int                  = t.int8("1+", default=3)
        acls:          list[AclDescription] = t.array(AclDescription)

    throttle_time_ms: int                        = t.int32()
    error_code:       int                        = t.int16()
    error_message:    str | None                 = t.string(nullable="0+")
    resources:        list[DescribeAclsResource] = t.array(DescribeAclsResource)
