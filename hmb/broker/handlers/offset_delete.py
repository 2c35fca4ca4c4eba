"""OffsetDelete: delete the committed offsets of topics that a group no longer reads (KIP-496).

Versions: 0; not in the flexible encoding (KIP-482).
Permissions: DELETE on the group; READ on each topic.
Behavior: to delete an offset, the broker writes a tombstone (a record without a value), and then responds. If
    `log.flush.acks.all` is true, it first syncs the tombstone to disk. A group with members must have the protocol
    type "consumer" or "streams". Otherwise the error is NON_EMPTY_GROUP. While members subscribe to a topic, each
    partition of the topic gets GROUP_SUBSCRIBED_TO_TOPIC, and the broker keeps its offset.
Version notes: none.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.shared_responses import merged
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from hmb.protocol.topics import TopicPartition

TopicResponse = OffsetDeleteResponse.OffsetDeleteResponseTopic
PartitionResponse = TopicResponse.OffsetDeleteResponsePartition


def handle(request: OffsetDeleteRequest, context: RequestContext) -> OffsetDeleteResponse:
    refused: list[TopicResponse] = []
    taken: list[TopicResponse] = []
    for wanted in request.topics:
        topic = context.broker.topics.get(wanted.name)
        bad, good = TopicResponse(name=wanted.name), TopicResponse(name=wanted.name)
        for partition in wanted.partitions:
            partition_response = PartitionResponse(partition_index=partition.partition_index)
            if topic is not None and partition.partition_index in topic.partitions:
                good.partitions.append(partition_response)
            else:
                partition_response.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                bad.partitions.append(partition_response)
        refused += [bad] if bad.partitions or topic is None else []
        taken += [good] if good.partitions else []
    response = OffsetDeleteResponse()
    with error_code_in(response):
        partitions = [TopicPartition(topic.name, each.partition_index) for topic in taken for each in topic.partitions]
        read = context.broker.groups.offsets.delete(request.group_id, partitions)
        for topic_response in taken:
            for partition_response in topic_response.partitions if topic_response.name in read else ():
                partition_response.error_code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        response.topics = merged(refused, taken)
    return response
