"""SyncGroup (14): the leader hands in the assignment, every member gets its part of it."""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class SyncGroupRequest(Request, api_key=ApiKey.SYNC_GROUP, versions="0-5", flexible="4+"):
    """Ask for this member's assignment; the leader sends everybody's.

    v3: static members.  v4: flexible.  v5: protocol type and name, for the broker to check (KIP-559).
    """

    class SyncGroupRequestAssignment(Struct):
        member_id:  str   = t.string()
        assignment: bytes = t.bytestring()

    group_id:          str                              = t.string()
    generation_id:     int                              = t.int32()
    member_id:         str                              = t.string()
    group_instance_id: str | None                       = t.string("3+", nullable="3+", default=None)
    protocol_type:     str | None                       = t.string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name:     str | None                       = t.string("5+", nullable="5+", default=None, ignorable=True)
    assignments:       list[SyncGroupRequestAssignment] = t.array(SyncGroupRequestAssignment)


class SyncGroupResponse(Response, api_key=ApiKey.SYNC_GROUP, versions="0-5", flexible="4+"):
    """What this member has to do, in the bytes that the leader wrote.

    v1: throttle time.  v4: flexible.  v5: protocol type and name.
    """

    throttle_time_ms: int        = t.int32("1+", ignorable=True)
    error_code:       int        = t.int16()
    protocol_type:    str | None = t.string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name:    str | None = t.string("5+", nullable="5+", default=None, ignorable=True)
    assignment:       bytes      = t.bytestring()
