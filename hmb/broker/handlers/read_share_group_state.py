"""ReadShareGroupState: return the states of share-partitions (KIP-932).

Versions: 0; in the flexible encoding (KIP-482).
Permissions: CLUSTER_ACTION on the cluster.
Behavior: in Kafka, brokers send this request to each other. HMB has only one broker, so only tools send this
    request to HMB. If the broker stores no state for a share-partition, the response contains the error
    INVALID_REQUEST for this share-partition.
Version notes: none. The API has one version.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.share.state_results import share_partition_results
from hmb.protocol.messages.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse

TopicResult = ReadShareGroupStateResponse.ReadStateResult
PartitionResult = TopicResult.PartitionResult


def handle(request: ReadShareGroupStateRequest, context: RequestContext) -> ReadShareGroupStateResponse:
    response = ReadShareGroupStateResponse()
    for id, data, result in share_partition_results(request, response.results, TopicResult, PartitionResult):
        with error_code_in(result):
            state = context.broker.share.coordinator.read(id, data.leader_epoch)
            result.state_epoch, result.start_offset = state.state_epoch, state.start_offset
            result.state_batches = [
                PartitionResult.StateBatch(
                    first_offset=each.first,
                    last_offset=each.last,
                    delivery_state=each.state,
                    delivery_count=each.delivery_count,
                )
                for each in state.batches
            ]
    return response
