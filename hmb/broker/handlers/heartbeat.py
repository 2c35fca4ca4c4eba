"""Heartbeat: keep a member in its group, and check whether the group rebalances.

Versions: 0-4; version 4 uses the flexible encoding (KIP-482).
Permissions: READ on the group.
Behavior: the broker restarts the session timeout of the member. If the response has the error REBALANCE_IN_PROGRESS,
    the member must join the group again.
Version notes: none. The versions differ only in their fields.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(request: HeartbeatRequest, context: RequestContext) -> HeartbeatResponse:
    response = HeartbeatResponse()
    with error_code_in(response):
        context.broker.groups.heartbeat(request)
    return response
