"""ListPartitionReassignments: list the partitions that are being moved between brokers.

Versions: 0; in the flexible encoding (KIP-482).
Permissions: DESCRIBE on the cluster.
Behavior: the list of moving partitions is always empty, because there is no other broker.
Version notes: none.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle(request: ListPartitionReassignmentsRequest, context: RequestContext) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_message=None)
