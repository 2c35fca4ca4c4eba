"""SyncGroup: the leader sends the assignment of all members, and each member receives its own assignment.

Versions: 0-5, flexible from 4.
Behavior: the response is sent when the leader has sent the assignment and it is stored. Until then the request waits
    in its connection's thread. In a group that is Stable, the response is sent at once.
Version notes: version 3 adds static members. Version 5 adds the protocol's type and name, which must be those of the
    group.
Left out: nothing.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import answering
from hmb.coordinator.shared_group import WaitingCall
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

FIRST_VERSION_OF_PROTOCOLS = SyncGroupRequest.first_version("protocol_type")


def handle(request: SyncGroupRequest, context: RequestContext) -> SyncGroupResponse:
    if context.version >= FIRST_VERSION_OF_PROTOCOLS and None in (request.protocol_type, request.protocol_name):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    context.memory.close()  # The request may wait long. The group limits the assignment.
    response = SyncGroupResponse()
    with answering(response):
        return context.broker.groups.sync(WaitingCall(is_client_gone=context.is_client_gone), request)
    return response
