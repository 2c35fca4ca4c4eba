"""ConsumerGroupHeartbeat: join a group of KIP-848's protocol, live, rebalance, leave.

Versions: 0-1, flexible from 0.
Behaviour: the broker assigns the partitions (uniform or range), and the member hears of its own where they have changed
    (coordinator/consumer_group.py tells the protocol).  Answered when what came of it is on disk.  An expression is
    matched against all topics in the same heartbeat, and again in the next one after a topic was made or deleted,
    where a Kafka broker takes some seconds.
Version notes: 1 brought subscriptions by regular expression, and wants the member to choose its id itself.
Left out: groups in which members of the classic protocol go on as members of this one: while they are there the group
    is none of this protocol, GROUP_ID_NOT_FOUND.  Racks.
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
