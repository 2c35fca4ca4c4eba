"""JoinGroup: join a group, or stay a member during a rebalance.

Versions: 0-9, flexible from 6.
Behavior: the response is sent when all members have joined, or when the time for the rebalance is over. Until then the
    request waits in its connection's thread (coordinator/classic/ explains the protocol). The group elects the leader.
    Only the leader's response contains all members and their metadata.
Version notes: version 0 has no rebalance timeout, and the session timeout replaces it. In versions below 4 a new member
    needs no member id. Version 5 adds static members. In versions below 7 an unknown protocol is "" instead of null.
    From version 9 on a static leader that returns can continue without a new assignment.
Left out: classic members in groups of KIP-848.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import answering
from hmb.coordinator.shared_group import WaitingCall
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

FIRST_VERSION_OF_NO_PROTOCOL = JoinGroupResponse.first_version("protocol_type")


def handle(request: JoinGroupRequest, context: RequestContext) -> JoinGroupResponse:
    if context.version == 0:
        request.rebalance_timeout_ms = request.session_timeout_ms
    client_host = f"/{context.client_host}"  # Java prints an address without a name in this form.
    call = WaitingCall(
        context.header.client_id or "", client_host, context.version, is_client_gone=context.is_client_gone
    )
    context.memory.close()  # The request may wait long. The group limits what it stores.
    response = JoinGroupResponse(member_id=request.member_id)
    with answering(response):
        response = context.broker.groups.join(call, request)
    if not response.protocol_name and context.version >= FIRST_VERSION_OF_NO_PROTOCOL:
        response.protocol_name = None
    return response
