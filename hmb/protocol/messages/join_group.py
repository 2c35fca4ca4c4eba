"""JoinGroup (11): become a member of a group, or stay one while it rebalances.

The answer comes when all members have joined: that is the barrier of a rebalance.  One of them is told to be the
leader and gets everybody's metadata, so that it can assign the partitions; the others learn theirs by SyncGroup.
"""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class JoinGroupRequest(Request, api_key=ApiKey.JOIN_GROUP, versions="0-9", flexible="6+"):
    """Join, with the protocols (assignment strategies) that this member knows, the preferred one first.

    v1: a time limit for the rebalance apart from that of the session (KIP-62).  v4: a member without an id gets one
    first and joins with it (KIP-394).  v5: static members (KIP-345).  v6: flexible.  v8: a reason, for the broker's
    log (KIP-800).  v2, v3, v7, v9: no change.
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
    """The new generation, and for the leader its members.

    v2: throttle time.  v5: static members.  v6: flexible.  v7: the protocol type; no protocol is null.  v9: a leader
    that came back need not assign anew.  The others are like the one before.
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
