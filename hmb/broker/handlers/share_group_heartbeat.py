"""ShareGroupHeartbeat: join, leave or stay in a share group (KIP-932).

Versions: 1; in the flexible encoding (KIP-482).
Permissions: READ on the group, and DESCRIBE on each topic that the member names.
Behavior: the broker assigns partitions to the members (coordinator/share/). Several members can get the same partition.
    If the assignment of the member has changed, the response contains the new assignment. The broker sends the response
    after the change is on disk. For each partition of a topic, a share group has a state, which contains the delivery
    states of records. The broker creates these states when the group subscribes to the topic for the first time.
Version notes: none, because HMB supports only one version. Kafka supported version 0 only in an early access release.
Left out: racks. The broker stores the rack of a member, but does not use it. This makes no difference to a client,
    because all partitions are on one broker.
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
