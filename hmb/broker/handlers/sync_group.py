"""SyncGroup: the leader sends the assignment of all members, and each member gets its own part of the assignment.

Versions: 0-5; versions 4 and later use the flexible encoding (KIP-482).
Permissions: READ on the group.
Behavior: one member, the leader, assigns the partitions. Its request contains the assignment of all members.
    - *Wait.* The requests of the other members wait for the leader's request. Each of them waits in the thread of
      its connection. If the group is in the state Stable, the broker already knows the assignment, and responds at
      once.
    - *Assignment.* The broker stores the assignment, and then responds to all members. Each response contains the
      partitions of one member.
    - *New protocol.* If the group uses the new group protocol (KIP-848), the broker itself computes the assignment,
      and responds at once.
Version notes: from version 5 on, a request must contain the type and the name of the protocol. If one of them is
    missing or differs from the group's protocol, the error is INCONSISTENT_GROUP_PROTOCOL.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.coordinator.group_runner import WaitingCall
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.sync_group import FIRST_VERSION_OF_PROTOCOLS, SyncGroupRequest, SyncGroupResponse


def handle(request: SyncGroupRequest, context: RequestContext) -> SyncGroupResponse:
    if context.version >= FIRST_VERSION_OF_PROTOCOLS and None in (request.protocol_type, request.protocol_name):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    context.account.close()  # Free the request's memory, because the request may wait long.
    response = SyncGroupResponse()
    with error_code_in(response):
        return context.broker.groups.sync(WaitingCall(is_client_gone=context.client.is_gone), request)
    return response
