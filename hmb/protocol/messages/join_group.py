"""JoinGroup (11): become a member of a group, or stay a member during a rebalance.

The broker answers when all members have joined. This wait is the barrier of a rebalance. The broker makes one member
the leader and sends it the metadata of all members, so that the leader can assign the partitions. All members receive
their assignment through SyncGroup.
"""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class JoinGroupRequest(Request, api_key=ApiKey.JOIN_GROUP, versions="0-9", flexible="6+"):
    """A request to join, with the protocols (assignment strategies) of this member, the preferred one first.

    Version 1 separates the time limit of a rebalance from the session timeout (KIP-62). From version 4 on, a new member
    first gets an id and then joins with it (KIP-394). Version 5 adds static members (KIP-345). Version 6 is flexible.
    Version 8 adds a reason for the broker's log (KIP-800). Versions 2, 3, 7 and 9 each equal the previous version.
    """

    class JoinGroupRequestProtocol(Struct):
        name:     str   = t.string()
        metadata: bytes = t.bytestring()

    group_id:             str                            = t.string()
    session_timeout_ms:   int                            = t.int32()
    rebalance_timeout_ms: int                            = t.int32("1+", default=-1, ignorable=True)
    member_id:            str                            = t.string()
    group_instance_id:    str | None                     = t.string("5+", nullable="5+", default=None)
    protocol_type:        str                            = t.string()
    protocols:            list[JoinGroupRequestProtocol] = t.array(JoinGroupRequestProtocol)
    reason:               str | None                     = t.string("8+", nullable="8+", default=None, ignorable=True)


class JoinGroupResponse(Response, api_key=ApiKey.JOIN_GROUP, versions="0-9", flexible="6+"):
    """The new generation and, for the leader, its members.

    Version 2 adds the throttle time. Version 5 adds static members. Version 6 is flexible. Version 7 adds the protocol
    type, and the protocol name may be null. Version 9 adds `skip_assignment`, for a static leader that has returned.
    Every other version equals the previous version.
    """

    class JoinGroupResponseMember(Struct):
        member_id:         str        = t.string()
        group_instance_id: str | None = t.string("5+", nullable="5+", default=None, ignorable=True)
        metadata:          bytes      = t.bytestring()

    throttle_time_ms: int                           = t.int32("2+", ignorable=True)
    error_code:       int                           = t.int16()
    generation_id:    int                           = t.int32(default=-1)
    protocol_type:    str | None                    = t.string("7+", nullable="7+", default=None, ignorable=True)
    protocol_name:    str | None                    = t.string(nullable="7+")
    leader:           str                           = t.string()
    skip_assignment:  bool                          = t.boolean("9+")
    member_id:        str                           = t.string()
    members:          list[JoinGroupResponseMember] = t.array(JoinGroupResponseMember)
