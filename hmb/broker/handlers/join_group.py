"""JoinGroup: join a group, or join the same group again during a rebalance.

Versions: 0-9; versions 6 and later use the flexible encoding (KIP-482).
Permissions: READ on the group.
Behavior: the broker responds when all members have joined, or when the rebalance timeout has passed. Until
    then, the thread of the connection waits (coordinator/classic/ explains the protocol). The coordinator
    selects one member as the leader. Only the response to the leader contains the list of all members and their
    metadata. If the group uses the new group protocol (KIP-848), the broker responds at once, and there is no
    leader (coordinator/migration/).
Version notes: in version 0, a request has no rebalance timeout, so the broker uses the session timeout instead.
    From version 4 on, a new member without an instance id first gets an error and a member id. It then joins
    with this member id. A response can contain no protocol, for example because of an error. The protocol's
    name is then "" in versions below 7, and null in later versions. If a static member that is the leader
    restarts and rejoins a Stable group, the group can keep its assignment. From version 9 on, this member then
    stays the leader, and the field `skip_assignment` tells it not to compute a new assignment. In older
    versions, the response makes it a follower.
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
