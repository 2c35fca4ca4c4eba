"""ConsumerGroupHeartbeat: join, leave or stay in a consumer group that uses the new group protocol (KIP-848).

Versions: 0-1; all use the flexible encoding (KIP-482).
Permissions: READ on the group, and DESCRIBE on each topic that the member names.
Behavior: the broker answers each heartbeat by these rules:
    - *Assignment.* The broker assigns partitions to the members (coordinator/modern/) with one of two
      algorithms: `uniform` or `range`. If the member's assignment has changed, the broker writes the change to
      disk. It then sends the new assignment in the response.
    - *Regular expressions.* A member can subscribe to all topics whose names match a regular expression. The
      broker searches for these topics before it responds to the heartbeat that contains a new expression. If a
      topic is later created or deleted, the group's next heartbeat starts a new search. (In Kafka, the search
      may start some seconds later.) An expression matches only topics that the sender of the heartbeat may
      describe.
    - *Classic members.* If a member joins a group whose members still use the classic protocol, the broker
      converts the group (coordinator/migration/). If the setting `group.consumer.migration.policy` forbids
      this, the heartbeat gets GROUP_ID_NOT_FOUND.
Version notes: in version 0, the broker chooses the id of a new member. From version 1 on, the member must
    choose its own id, and a heartbeat without an id gets INVALID_REQUEST.
Left out: racks. The broker ignores the rack of a member. This makes no difference to a client, because all
    partitions are on one broker.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.coordinator.consumer.requests import ConsumerGroupRequests
from hmb.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def handle(request: ConsumerGroupHeartbeatRequest, context: RequestContext) -> ConsumerGroupHeartbeatResponse:
    response = ConsumerGroupHeartbeatResponse()
    with error_code_in(response):
        return ConsumerGroupRequests(context.broker.groups).heartbeat(
            request, context.client_id, context.client_host, context.version, context.may_describe
        )
    return response
