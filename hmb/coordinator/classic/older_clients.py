"""The requests and responses of older clients: a coordinator's answer can depend on the version of the request.

    JoinGroup version 0 to 3    a new member joins at once; newer clients first request a member id (KIP-394)
    JoinGroup version 0 to 8    a restarted static leader acts as a follower, because the field `skip_assignment`
                                is missing (KIP-814)
    SyncGroup version 0 to 4    the request does not contain the protocol, so the group cannot check it (KIP-559)

For example, a static leader restarts while its group is Stable. With version 9 the response contains all members and
`skip_assignment`. With version 8 it contains the old member id as the leader, so the client does not assign partitions.
"""

from __future__ import annotations

from hmb.coordinator.classic.members import Call
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.join_group import JoinGroupResponse
from hmb.protocol.messages.sync_group import SyncGroupRequest

FIRST_VERSION_OF_REQUIRED_IDS = 4
FIRST_VERSION_OF_SKIPPED_ASSIGNMENT = JoinGroupResponse.first_version("skip_assignment")


def requests_member_id(call: Call) -> bool:
    """Return whether the client of a JoinGroup expects a member id before it joins."""
    return call.version >= FIRST_VERSION_OF_REQUIRED_IDS


def without_assignment(response: JoinGroupResponse, call: Call, old_leader: str | None) -> JoinGroupResponse:
    """Change the response to a restarted static member. A leader then keeps the old assignment."""
    if call.version >= FIRST_VERSION_OF_SKIPPED_ASSIGNMENT:
        response.skip_assignment = bool(response.members)
    else:  # The leader in the response is the member's old id, so the member acts as a follower.
        response.leader, response.members = old_leader or "", []
    return response


def check_protocol(request: SyncGroupRequest, protocol_type: str | None, protocol: str | None) -> None:
    """Compare the protocol of a SyncGroup with the group's. Raises INCONSISTENT_GROUP_PROTOCOL if they differ."""
    if _differ(request.protocol_type, protocol_type) or _differ(request.protocol_name, protocol):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _differ(requested: str | None, known: str | None) -> bool:
    return requested is not None and known is not None and requested != known
