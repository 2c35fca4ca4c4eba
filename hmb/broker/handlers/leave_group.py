"""LeaveGroup: remove members from a group. The group rebalances at once, not only after a session timeout.

Versions: 0-5; versions 4 and later use the flexible encoding (KIP-482).
Permissions: READ on the group.
Behavior: each member has its own error code. An admin client can remove a static member by its group instance id,
    without a member id. The request can also remove members of a group that uses the new group protocol (KIP-848).
Version notes: the broker treats a request of versions 0 to 2 as a list with one member.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.protocol.messages.leave_group import FIRST_VERSION_OF_MEMBERS, LeaveGroupRequest, LeaveGroupResponse


def handle(request: LeaveGroupRequest, context: RequestContext) -> LeaveGroupResponse:
    several = context.version >= FIRST_VERSION_OF_MEMBERS
    leaving = request.members if several else [LeaveGroupRequest.MemberIdentity(member_id=request.member_id)]
    response = LeaveGroupResponse()
    with error_code_in(response):
        outcomes = context.broker.groups.leave(request.group_id, leaving)
        if not several:
            response.error_code = outcomes[0]
            return response
        response.members = [
            LeaveGroupResponse.MemberResponse(
                member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=code
            )
            for member, code in zip(leaving, outcomes, strict=True)
        ]
    return response
