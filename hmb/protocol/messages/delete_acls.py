"""DeleteAcls (31): delete the ACLs that match filters (KIP-140, KIP-290)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class DeleteAclsRequest(Request, api_key=ApiKey.DELETE_ACLS, versions="0-3", flexible="2+"):
    """The filters that select the ACLs to delete.

    If the resource name, the principal or the host in a filter is null, it matches every value.

    - Version 1 adds the pattern type. For example, LITERAL selects ACLs for one resource name, and PREFIXED selects
      ACLs for all names that begin with a prefix.
    - Version 2 uses the flexible encoding (KIP-482).
    - Version 3 adds the resource type USER.
    """

    class DeleteAclsFilter(Struct):
        resource_type_filter: int        = t.int8()
        resource_name_filter: str | None = t.string(nullable="0+")
        pattern_type_filter:  int        = t.int8("1+", default=3)
        principal_filter:     str | None = t.string(nullable="0+")
        host_filter:          str | None = t.string(nullable="0+")
        operation:            int        = t.int8()
        permission_type:      int        = t.int8()

    filters: list[DeleteAclsFilter] = t.array(DeleteAclsFilter)


class DeleteAclsResponse(Response, api_key=ApiKey.DELETE_ACLS, versions="0-3", flexible="2+"):
    """For each filter in the request, the ACLs that the broker has deleted.

    - Version 1 adds the pattern type of an ACL: whether the ACL applies to one resource name, or to all names that
      begin with a prefix.
    - Version 2 uses the flexible encoding (KIP-482).
    - Version 3 adds the resource type USER.
    """

    class DeleteAclsFilterResult(Struct):
        class DeleteAclsMatchingAcl(Struct):
            error_code:      int        = t.int16()
            error_message:   str | None = t.string(nullable="0+")
            resource_type:   int        = t.int8()
            resource_name:   str        = t.string()
            pattern_type:    int        = t.int8("1+", default=3)
            principal:       str        = t.string()
            host:            str        = t.string()
            operation:       int        = t.int8()
            permission_type: int        = t.int8()

        error_code:    int                         = t.int16()
        error_message: str | None                  = t.string(nullable="0+")
        matching_acls: list[DeleteAclsMatchingAcl] = t.array(DeleteAclsMatchingAcl)

    throttle_time_ms: int                          = t.int32()
    filter_results:   list[DeleteAclsFilterResult] = t.array(DeleteAclsFilterResult)
