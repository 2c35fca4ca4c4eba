"""JoinGroup: become a member of a group, or stay one while it rebalances.

Versions: 0-9, flexible from 6.
Behaviour: the answer comes when all members have joined, or when the time for it is up; until then the request waits
    in its connection's thread (coordinator/classic_group.py tells the protocol).  The group chooses who leads; the
    leader is told all members with their metadata.
Version notes: 0 has no time limit for the rebalance, its session timeout is taken; below 4 a new member needs no member
    id; 5 brought static members; below 7 a protocol that is not known is "" in place of null; 9 lets a static leader
    that is back go on without assigning anew.
Left out: groups of KIP-848's protocol that members of this one join.
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
    client_host = f"/{context.client_host}"  # as Java prints an address without a name, and Kafka's tools know it
    call = WaitingCall(
        context.header.client_id or "", client_host, context.version, is_client_gone=context.is_client_gone
    )
    context.memory.close()  # the request may wait for long; what the group keeps of it is limited by the groups
    response = JoinGroupResponse(member_id=request.member_id)
    with answering(response):
        response = context.broker.groups.join(call, request)
    if not response.protocol_name and context.version >= FIRST_VERSION_OF_NO_PROTOCOL:
        response.protocol_name = None
    return response
