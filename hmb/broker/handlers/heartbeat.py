"""Heartbeat: a member says that it lives, and hears whether the group rebalances.

Versions: 0-4, flexible from 4.
Behaviour: begins the member's session anew.  REBALANCE_IN_PROGRESS while the group waits for its members to join.
Version notes: 3 brought static members; the others differ in their bytes only.
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
