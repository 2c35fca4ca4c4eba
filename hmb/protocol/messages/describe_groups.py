"""DescribeGroups (15): state and members of groups of the classic protocol."""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class DescribeGroupsRequest(Request, api_key=ApiKey.DESCRIBE_GROUPS, versions="0-6", flexible="5+"):
    """Describe these groups.  v3: what one may do with them (KIP-430).  v5: flexible.  v1, v2, v4 and v6: no change."""

    groups:                        list[str] = t.array(t.string)
    include_authorized_operations: bool      = t.boolean("3+")


class DescribeGroupsResponse(Response, api_key=ApiKey.DESCRIBE_GROUPS, versions="0-6", flexible="5+"):
    """Each group.  v1: throttle time.  v3: authorized operations.  v4: static members.  v5: flexible.  v6: an unknown
    group is GROUP_ID_NOT_FOUND with a message (KIP-1043); before that it is in state Dead.
    """

    class DescribedGroup(Struct):
        class DescribedGroupMember(Struct):
            member_id:         str        = t.string()
            group_instance_id: str | None = t.string("4+", nullable="4+", default=None, ignorable=True)
            client_id:         str        = t.string()
            client_host:       str        = t.string()
            member_metadata:   bytes      = t.bytestring()
            member_assignment: bytes      = t.bytestring()

        error_code:            int                        = t.int16()
        error_message:         str | None                 = t.string("6+", nullable="6+", default=None)
        group_id:              str                        = t.string()
        group_state:           str                        = t.string()
        protocol_type:         str                        = t.string()
        protocol_data:         str                        = t.string()
        members:               list[DescribedGroupMember] = t.array(DescribedGroupMember)
        authorized_operations: int                        = t.int32("3+", default=-2147483648)

    throttle_time_ms: int                  = t.int32("1+", ignorable=True)
    groups:           list[DescribedGroup] = t.array(DescribedGroup)
