"""LeaveGroup (13): remove members from a group.

After LeaveGroup, the group rebalances at once. If a member stops without LeaveGroup, the group rebalances
only after the session timeout.
"""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class LeaveGroupRequest(Request, api_key=ApiKey.LEAVE_GROUP, versions="0-5", flexible="4+"):
    """The members that leave the group.

    Versions 0 to 2 contain one member id. Version 3 contains several members, each with its member id or its group
    instance id (KIP-345). Version 4 uses the flexible encoding (KIP-482). Version 5 adds the reason why each member
    leaves (KIP-800).
    """

    class MemberIdentity(Struct):
        member_id:         str        = t.string("3+")
        group_instance_id: str | None = t.string("3+", nullable="3+", default=None)
        reason:            str | None = t.string("5+", nullable="5+", default=None, ignorable=True)

    group_id:  str                  = t.string()
    member_id: str                  = t.string("0-2")
    members:   list[MemberIdentity] = t.array(MemberIdentity, "3+")


class LeaveGroupResponse(Response, api_key=ApiKey.LEAVE_GROUP, versions="0-5", flexible="4+"):
    """Success, or an error code. From version 3 on, each member has its own error code.

    Version 1 adds the throttle time. Version 4 uses the flexible encoding (KIP-482).
    """

    class MemberResponse(Struct):
        member_id:         str        = t.string("3+")
        group_instance_id: str | None = t.string("3+", nullable="3+")
        error_code:        int        = t.int16("3+")

    throttle_time_ms: int                  = t.int32("1+", ignorable=True)
    error_code:       int                  = t.int16()
    members:          list[MemberResponse] = t.array(MemberResponse, "3+")


FIRST_VERSION_OF_MEMBERS = LeaveGroupRequest.first_version("members")
