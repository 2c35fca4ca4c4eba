"""JoinGroup: join a group, or join the same group again during a rebalance.

Versions: 0-9; versions 6 and later use the flexible encoding (KIP-482).
Permissions: READ on the group.
Behavior: the broker responds when all members have joined, or when the rebalance timeout has passed. Until
    then, the thread of the connection waits (coordinator/classic/ explains the protocol). The coordinator
    selects one member as the leader. Only the response to the leader contains the list of all members and their
    metadata. If the group uses the new group protocol (KIP-848), the broker responds at once, and there is no
    leader (coordinator/migration/).
Version notes: the versions differ in these points:
    - In version 0, a request has no rebalance timeout, so the broker uses the session timeout instead.
    - From version 4 on, a new member without an instance id first gets the error MEMBER_ID_REQUIRED and a
      member id. The member sends a second request with this member id.
    - If a response has no protocol name, for example because of an error, the name is "" in versions 0 to
      6, and null from version 7 on.
    - A static member that leads a Stable group can restart and join again. If the group keeps its assignment,
      the member must not compute a new one. From version 9 on, the member stays the leader, and
      `skip_assignment` is true. Versions 0 to 8 lack this field, so the response makes the member a follower.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.coordinator.group_runner import WaitingCall
from hmb.protocol.messages.join_group import FIRST_VERSION_OF_NO_PROTOCOL, JoinGroupRequest, JoinGroupResponse


def handle(request: JoinGroupRequest, context: RequestContext) -> JoinGroupResponse:
    if context.version == 0:
        request.rebalance_timeout_ms = request.session_timeout_ms
    call = WaitingCall(
        context.client_id, context.client_host, context.version, is_client_gone=context.client.is_gone
    )
    context.account.close()  # Free the request's memory, because the request may wait long.
    response = JoinGroupResponse(member_id=request.member_id)
    with error_code_in(response):
        response = context.broker.groups.join(call, request, context.may_describe)
    if not response.protocol_name and context.version >= FIRST_VERSION_OF_NO_PROTOCOL:
        response.protocol_name = None
    return response
