"""ReadShareGroupStateSummary: return the start offsets of share-partitions (KIP-932).

Versions: 0-1; all use the flexible encoding (KIP-482).
Permissions: CLUSTER_ACTION on the cluster.
Behavior: in Kafka, brokers send this request to each other. HMB's only broker reads the states without a request, and
    supports this request only for tools. A share-partition without a state has the start offset -1.
Version notes: version 1 adds the number of records whose delivery is complete.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.share.state_results import share_partition_results
from hmb.protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)

TopicResult = ReadShareGroupStateSummaryResponse.ReadStateSummaryResult
PartitionResult = TopicResult.PartitionResult


def handle(request: ReadShareGroupStateSummaryRequest, context: RequestContext) -> ReadShareGroupStateSummaryResponse:
    response = ReadShareGroupStateSummaryResponse()
    for id, _, result in share_partition_results(request, response.results, TopicResult, PartitionResult):
        with error_code_in(result):
            state = context.broker.share.coordinator.summary(id)
            result.state_epoch, result.leader_epoch = state.state_epoch, state.leader_epoch
            result.start_offset, result.delivery_complete_count = state.start_offset, state.complete_count
    return response
