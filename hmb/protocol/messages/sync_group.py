"""SyncGroup (14): the leader sends the assignments of all members, and each member receives its own assignment."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class SyncGroupRequest(Request, api_key=ApiKey.SYNC_GROUP, versions="0-5", flexible="4+"):
    """A request for the member's assignment. The leader's request also contains all members' assignments.

    - Version 3 adds `group_instance_id`, the id of a static member.
    - Version 4 uses the flexible encoding (KIP-482).
    - Version 5 adds the protocol type and the protocol name. The broker checks that the group uses both
      (KIP-559).
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
    """The member's assignment. The broker returns the bytes that the leader sent, and does not decode them.

    Version 1 adds the throttle time. Version 4 uses the flexible encoding (KIP-482). Version 5 adds the protocol type
    and the protocol name.
    """

    throttle_time_ms: int        = t.int32("1+", ignorable=True)
    error_code:       int        = t.int16()
    protocol_type:    str | None = t.string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name:    str | None = t.string("5+", nullable="5+", default=None, ignorable=True)
    assignment:       bytes      = t.bytestring()


FIRST_VERSION_OF_PROTOCOLS = SyncGroupRequest.first_version("protocol_type")
