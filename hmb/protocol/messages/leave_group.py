"""LeaveGroup (13): members go, and the group rebalances at once in place of waiting for their sessions to end."""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class LeaveGroupRequest(Request, api_key=ApiKey.LEAVE_GROUP, versions="0-5", flexible="4+"):
    """These members leave.

    v0 to v2: one, by its id.  v3: several, by member id or group instance id (KIP-345).  v4: flexible.  v5: a reason
    (KIP-800).
    """

    class MemberIdentity(Struct):
        member_id:         str        = t.string("3+")
        group_instance_id: str | None = t.string("3+", nullable="3+", default=None)
        reason:            str | None = t.string("5+", nullable="5+", default=None, ignorable=True)

    group_id:  str                  = t.string()
    member_id: str                  = t.string("0-2")
    members:   list[MemberIdentity] = t.array(MemberIdentity, "3+")


class LeaveGroupResponse(Response, api_key=ApiKey.LEAVE_GROUP, versions="0-5", flexible="4+"):
    """Success or error; from v3 on of each member.  v1: throttle time.  v4: flexible."""

    class MemberResponse(Struct):
        member_id:         str        = t.string("3+")
        group_instance_id: str | None = t.string("3+", nullable="3+")
        error_code:        int        = t.int16("3+")

    throttle_time_ms: int                  = t.int32("1+", ignorable=True)
    error_code:       int                  = t.int16()
    members:          list[MemberResponse] = t.array(MemberResponse, "3+")
