"""InitializeShareGroupState: create the states of share-partitions (KIP-932).

Versions: 0; in the flexible encoding (KIP-482).
Permissions: CLUSTER_ACTION on the cluster.
Behavior: in Kafka, brokers send this request to each other. HMB has only one broker, which creates the states
    without a request. So HMB supports this request only for tools. The broker creates the state of a
    share-partition, or replaces the stored state. If the state epoch in the request is older than the stored
    one, the broker changes nothing, and the error is FENCED_STATE_EPOCH.
Version notes: none. The API has one version.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.share.state_results import BegunChange, finish_changes, share_partition_results
from hmb.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)

TopicResult = InitializeShareGroupStateResponse.InitializeStateResult
PartitionResult = TopicResult.PartitionResult


def handle(request: InitializeShareGroupStateRequest, context: RequestContext) -> InitializeShareGroupStateResponse:
    response = InitializeShareGroupStateResponse()
    coordinator, changes = context.broker.share.coordinator, []
    for id, data, result in share_partition_results(request, response.results, TopicResult, PartitionResult):
        with error_code_in(result):
            context.broker.share.partitions.discard([id])
            queued = coordinator.begin_initialize(id, data.state_epoch, data.start_offset)
            changes.append(BegunChange(id, result, queued))
    finish_changes(coordinator, changes)
    return response
