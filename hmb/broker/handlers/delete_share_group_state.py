"""DeleteShareGroupState: delete the states of share-partitions (KIP-932).

Versions: 0; in the flexible encoding (KIP-482).
Permissions: CLUSTER_ACTION on the cluster.
Behavior: in Kafka, brokers send this request to each other. HMB has only one broker, so only tools send this
    request to HMB. If the broker stores no state for a share-partition, it changes nothing, and the response
    contains no error for this share-partition.
Version notes: none. The API has one version.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.share.state_results import BegunChange, finish_changes, share_partition_results
from hmb.protocol.messages.delete_share_group_state import DeleteShareGroupStateRequest, DeleteShareGroupStateResponse

TopicResult = DeleteShareGroupStateResponse.DeleteStateResult
PartitionResult = TopicResult.PartitionResult


def handle(request: DeleteShareGroupStateRequest, context: RequestContext) -> DeleteShareGroupStateResponse:
    response = DeleteShareGroupStateResponse()
    coordinator, changes = context.broker.share.coordinator, []
    for id, _, result in share_partition_results(request, response.results, TopicResult, PartitionResult):
        with error_code_in(result):
            context.broker.share.partitions.discard([id])
            if (queued := coordinator.begin_delete(id)) is not None:
                changes.append(BegunChange(id, result, queued))
    finish_changes(coordinator, changes)
    return response
