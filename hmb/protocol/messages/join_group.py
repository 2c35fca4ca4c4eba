"""JoinGroup (11): become a member of a group, or stay a member during a rebalance.

The broker responds only after all members have sent JoinGroup. So the new generation begins at the same time for all
members. The broker chooses one member as the leader, and sends the metadata of all members to the leader. The leader
assigns the partitions. Then each member gets its assignment in the response to a SyncGroup request.
"""

from typing import ClassVar

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class JoinGroupRequest(Request, api_key=ApiKey.JOIN_GROUP, versions="0-9", flexible="6+"):
    """A request to join a group.

    The request lists the assignment strategies ("protocols") of the member, the preferred strategy first.

    - Version 1 adds a time limit for the rebalance (KIP-62). In version 0, the broker uses the session timeout as
      this limit.
    - From version 4 on, a new member sends JoinGroup twice, unless it is a static member (KIP-394). The first
      response contains a member id. The second request contains this id.
    - Version 5 adds `group_instance_id`, the id of a static member (KIP-345).
    - Version 6 uses the flexible encoding (KIP-482).
    - Version 8 adds the reason why the member joins (KIP-800). The broker logs it.

    Versions 2, 3, 7 and 9 do not change the layout.
    """

    FIRST_VERSION_OF_REQUIRED_IDS: ClassVar[int] = 4

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
    """The group's new generation. The response to the leader also contains all members.

    - Version 2 adds the throttle time.
    - Version 5 adds the instance ids of static members.
    - Version 6 uses the flexible encoding (KIP-482).
    - Version 7 adds the protocol type, and allows null as the protocol name.
    - Version 9 adds `skip_assignment`. It is true if the leader is a static member that has restarted, and the
      group already has an assignment. The leader then does not compute a new one.

    Versions 1, 3, 4 and 8 do not change the layout.
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


FIRST_VERSION_OF_NO_PROTOCOL = JoinGroupResponse.first_version("protocol_type")
FIRST_VERSION_OF_SKIPPED_ASSIGNMENT = JoinGroupResponse.first_version("skip_assignment")
