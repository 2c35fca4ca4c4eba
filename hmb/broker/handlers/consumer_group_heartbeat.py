"""ConsumerGroupHeartbeat: join a group of KIP-848, stay a member, rebalance, and leave.

Versions: 0-1, flexible from 0.
Behavior: the broker assigns the partitions (uniform or range), and a member learns its own partitions when they have
    changed (coordinator/modern/). The response is sent when the change is on disk. A regular expression is matched
    against all topics during the same heartbeat. The expression is matched again during the next heartbeat after a
    topic was created or deleted. A Kafka broker takes some seconds for that.
Version notes: version 1 adds subscriptions by regular expression, and requires that the member chooses its own id.
Left out: groups that contain members of both protocols, and racks. While a group has classic members, this request gets
    GROUP_ID_NOT_FOUND.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import answering
from hmb.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def handle(request: ConsumerGroupHeartbeatRequest, context: RequestContext) -> ConsumerGroupHeartbeatResponse:
    response = ConsumerGroupHeartbeatResponse()
    with answering(response):
        client_id, client_host = context.header.client_id or "", f"/{context.client_host}"
        return context.broker.groups.consumer_heartbeat(request, client_id, client_host, context.version)
    return response
