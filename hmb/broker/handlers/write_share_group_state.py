"""WriteShareGroupState: store changes of the states of share-partitions (KIP-932).

Versions: 0-1; all use the flexible encoding (KIP-482).
Permissions: CLUSTER_ACTION on the cluster.
Behavior: in Kafka, brokers send this request to each other. HMB has only one broker, so only tools send this
    request to HMB. The broker sends the response after the changes are on disk. If the broker stores no state
    for a share-partition, the error is INVALID_REQUEST. If the state epoch in the request is too old, the error
    is FENCED_STATE_EPOCH. If the leader epoch in the request is too old, the error is FENCED_LEADER_EPOCH.
Version notes: version 1 adds the number of records whose delivery is complete.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.share.state_results import BegunChange, finish_changes, share_partition_results
from hmb.coordinator.share.in_flight import StateBatch, Update
from hmb.coordinator.share.stored_state import check_batches, delivery_state
from hmb.protocol.messages.write_share_group_state import WriteShareGroupStateRequest, WriteShareGroupStateResponse

TopicResult = WriteShareGroupStateResponse.WriteStateResult
PartitionResult = TopicResult.PartitionResult


def handle(request: WriteShareGroupStateRequest, context: RequestContext) -> WriteShareGroupStateResponse:
    response = WriteShareGroupStateResponse()
    coordinator, changes = context.broker.share.coordinator, []
    for id, data, result in share_partition_results(request, response.results, TopicResult, PartitionResult):
        with error_code_in(result):
            batches = [
                StateBatch(each.first_offset, each.last_offset, delivery_state(each), each.delivery_count)
                for each in data.state_batches
            ]
            check_batches(batches)
            update = Update(data.start_offset, data.delivery_complete_count, batches)
            queued = coordinator.begin_write(id, data.state_epoch, data.leader_epoch, update)
            changes.append(BegunChange(id, result, queued))
    finish_changes(coordinator, changes)
    context.broker.share.partitions.discard([change.id for change in changes])
    return response
