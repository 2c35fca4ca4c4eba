"""ListPartitionReassignments: the moves of partitions from broker to broker that are under way.

Versions: 0, flexible.
Behaviour: there is no other broker, so there are none, whatever is asked for.
Version notes: none.
Left out: nothing.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle(request: ListPartitionReassignmentsRequest, context: RequestContext) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_message=None)
