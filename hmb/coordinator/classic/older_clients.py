"""Supports older clients: the coordinator's response can depend on the version of the request.

The coordinator treats these older requests differently from newer requests:
    JoinGroup version 0 to 3    a new member joins immediately; newer clients first request a member id (KIP-394)
    JoinGroup version 0 to 8    if the leader is a static member and restarts, it acts as a follower, because the
                                response has no field `skip_assignment` (KIP-814)
    SyncGroup version 0 to 4    the request does not contain the protocol, so the group cannot check it (KIP-559)

For example, the leader of a Stable group is a static member. Its client restarts and sends JoinGroup. The group already
has an assignment, so this client must not assign partitions. The response in version 9 therefore contains the
field `skip_assignment`. The response in version 8 has no such field. Instead, it contains the client's old member id as
the id of the leader. The client has a new id, so it acts as a follower and assigns no partitions.
"""

from __future__ import annotations

from hmb.coordinator.classic.members import Call
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.join_group import (
    FIRST_VERSION_OF_SKIPPED_ASSIGNMENT,
    JoinGroupRequest,
    JoinGroupResponse,
)
from hmb.protocol.messages.sync_group import SyncGroupRequest


def requests_member_id(call: Call) -> bool:
    """Return whether the client must first receive a member id from the broker and then join again with this id."""
    return call.version >= JoinGroupRequest.FIRST_VERSION_OF_REQUIRED_IDS


def without_assignment(response: JoinGroupResponse, call: Call, old_leader: str | None) -> JoinGroupResponse:
    """Change a JoinGroup response so that its receiver, a static member that has restarted, assigns no partitions.

    Even if this member is the leader, it must not assign partitions now, because the group already has an assignment.
    """
    if call.version >= FIRST_VERSION_OF_SKIPPED_ASSIGNMENT:
        response.skip_assignment = bool(response.members)
    else:  # The response contains the member's old id as the leader, so the client acts as a follower.
        response.leader, response.members = old_leader or "", []
    return response


def check_protocol(request: SyncGroupRequest, protocol_type: str | None, protocol: str | None) -> None:
    """Raise INCONSISTENT_GROUP_PROTOCOL if a SyncGroup request contains a protocol that the group does not use."""
    if _differ(request.protocol_type, protocol_type) or _differ(request.protocol_name, protocol):
        asked = f"{request.protocol_type!r}, {request.protocol_name!r}"
        why = f"the member uses the protocol {asked}, but the group uses {protocol_type!r}, {protocol!r}"
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, why)


def _differ(requested: str | None, known: str | None) -> bool:
    return requested is not None and known is not None and requested != known
