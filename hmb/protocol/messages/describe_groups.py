"""DescribeGroups (15): return the state and the members of groups that use the classic protocol."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class DescribeGroupsRequest(Request, api_key=ApiKey.DESCRIBE_GROUPS, versions="0-6", flexible="5+"):
    """The groups to describe.

    From version 3 on, the client can ask which operations it is authorized for (KIP-430). Version 5 uses the flexible
    encoding (KIP-482). Versions 1, 2, 4 and 6 each have the same layout as the version before.
    """

    groups:                        list[str] = t.array(t.string)
    include_authorized_operations: bool      = t.boolean("3+")


class DescribeGroupsResponse(Response, api_key=ApiKey.DESCRIBE_GROUPS, versions="0-6", flexible="5+"):
    """The state and the members of each group.

    - Version 1 adds the throttle time. Version 2 has the same layout.
    - Version 3 adds the operations that the client is authorized for.
    - Version 4 adds the instance ids of static members.
    - Version 5 uses the flexible encoding (KIP-482).
    - Version 6 adds an error message. If a group does not exist, the error is GROUP_ID_NOT_FOUND (KIP-1043). In
      versions 0 to 5, such a group has no error, and its state is Dead.
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


FIRST_VERSION_OF_MESSAGES = DescribeGroupsResponse.first_version("groups.error_message")
