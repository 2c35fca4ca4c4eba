"""Heartbeat: keep a member's session alive, and learn whether the group rebalances.

Versions: 0-4, flexible from 4.
Behavior: the member's session begins again. The error REBALANCE_IN_PROGRESS means that the group waits for its members
    to join.
Version notes: version 3 adds static members. All other versions differ only in their encoding.
Left out: nothing.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import answering
from hmb.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
    response = HeartbeatResponse()
    with answering(response):
        context.broker.groups.heartbeat(request)
    return response
