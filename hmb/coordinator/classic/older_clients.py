"""Supports older clients: the coordinator's response can depend on the version of the request.

The coordinator treats these older requests differently from newer requests:
    JoinGroup version 0 to 3    A new member joins immediately. With a newer version, it must first get a
                                member id from the broker, and then join with this id (KIP-394).
    JoinGroup version 0 to 8    If a static leader restarts, the response names the old member id as the
                                leader. The restarted member then assigns no partitions. Newer versions
                                use `skip_assignment` instead (KIP-814).
    SyncGroup version 0 to 4    The request does not contain the member's protocol, so the coordinator cannot
                                check whether the group uses this protocol (KIP-559).

For example, a static member is the leader of a Stable group. Its client restarts and sends JoinGroup. The group already
has an assignment, so the client must not compute a new one. The response prevents this:
- Version 9 has the field `skip_assignment`. The value true means: you are the leader, but do not assign partitions.
- Version 8 does not have this field. The response names the member's old id as the leader. The client now has a new
  member id, so it acts as a follower.
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
    """Change the JoinGroup response for a restarted static member, so that the member assigns no partitions.

    The group already has an assignment. Without this change, a restarted leader would compute a new assignment.
    `old_leader` is the member id that the group's leader had before the restart.
    """
    if call.version >= FIRST_VERSION_OF_SKIPPED_ASSIGNMENT:
        response.skip_assignment = bool(response.members)
    else:  # The response names the member's old id as the leader. The client has a new id, so it acts as a follower.
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
