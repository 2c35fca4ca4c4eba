"""AlterShareGroupOffsets: change the start offsets of a share group's share-partitions (KIP-932).

Versions: 0; in the flexible encoding (KIP-482).
Permissions: READ on the group; READ on each topic.
Behavior: the request contains a new start offset for each partition. The group continues to read at this offset. The
    broker deletes the delivery states of all records at or above this offset, so the group also receives acknowledged
    records again. If the group has never read a partition, the broker adds this partition to the group. If the group
    does not exist, the broker creates a share group without members. If the group has members, the broker changes
    nothing, and the error is NON_EMPTY_GROUP.
Version notes: none. The API has one version.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in, put_error
from hmb.coordinator.group_table import check_group_id
from hmb.coordinator.share.requests import NewOffset
from hmb.protocol.errors import KafkaError
from hmb.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from hmb.protocol.topics import NO_TOPIC_ID, PartitionId

TopicResponse = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic
PartitionResponse = TopicResponse.AlterShareGroupOffsetsResponsePartition


def handle(request: AlterShareGroupOffsetsRequest, context: RequestContext) -> AlterShareGroupOffsetsResponse:
    response = AlterShareGroupOffsetsResponse()
    offsets: list[NewOffset] = []
    for wanted in request.topics:
        response.responses.append(topic_response := TopicResponse(topic_name=wanted.topic_name))
        for each in wanted.partitions:
            topic_response.partitions.append(partition := PartitionResponse(partition_index=each.partition_index))
            with error_code_in(partition):
                topic = context.broker.topics.find(wanted.topic_name, NO_TOPIC_ID)
                topic_response.topic_id = topic.id
                topic.log(each.partition_index)
                offsets.append(NewOffset(PartitionId(topic.id, each.partition_index), each.start_offset))
    try:
        check_group_id(request.group_id)
        context.broker.share.alter_offsets(request.group_id, offsets)
    except KafkaError as error:
        response.responses.clear()
        put_error(response, error)
    return response
