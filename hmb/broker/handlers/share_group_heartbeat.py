"""ShareGroupHeartbeat: join, leave or stay in a share group (KIP-932).

Versions: 1; in the flexible encoding (KIP-482).
Permissions: READ on the group, and DESCRIBE on each topic that the member names.
Behavior: the broker assigns partitions to the members (coordinator/share/). Several members can get the same partition.
    If the assignment of the member has changed, the response contains the new assignment. The broker sends the response
    after the change is on disk. When a group subscribes to a topic for the first time, the broker also creates the
    states of its share-partitions.
Version notes: none. Kafka had version 0 only in an early access release.
Left out: racks. The broker stores the rack of a member, and ignores it. This makes no difference to a client, because
    all partitions are on one broker.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse


def handle(request: ShareGroupHeartbeatRequest, context: RequestContext) -> ShareGroupHeartbeatResponse:
    response = ShareGroupHeartbeatResponse()
    with error_code_in(response):
        return context.broker.share.heartbeat(request, context.client_id, context.client_host)
    return response
