"""DescribeShareGroupOffsets: return the start offset of each share-partition of share groups (KIP-932).

Versions: 0-1; all use the flexible encoding (KIP-482).
Permissions: DESCRIBE on each group, and on each topic.
Behavior: if the list of topics is null, the response contains all share-partitions of the group. If the group has
    never read a partition, the start offset of this partition is -1. If the group is not a share group, the
    response contains the error GROUP_ID_NOT_FOUND for it.
Version notes: version 1 adds the lag of each partition. The lag is the number of records that the group has not yet
    processed, counted from the start offset to the end of the partition. If the start offset is unknown, the lag is
    -1.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import BrokerContext, RequestContext
from hmb.broker.errors import error_code_in
from hmb.coordinator.modern.partitions import by_topic
from hmb.coordinator.share.state_records import NO_START_OFFSET
from hmb.coordinator.share.stored_state import ShareState
from hmb.protocol.enums import INT64_MAX
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from hmb.protocol.topics import PartitionId

WantedGroup = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
GroupResponse = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
TopicResponse = GroupResponse.DescribeShareGroupOffsetsResponseTopic
PartitionResponse = TopicResponse.DescribeShareGroupOffsetsResponsePartition
States = dict[PartitionId, ShareState]
NO_LAG = -1


def handle(request: DescribeShareGroupOffsetsRequest, context: RequestContext) -> DescribeShareGroupOffsetsResponse:
    response = DescribeShareGroupOffsetsResponse()
    for wanted in request.groups:
        group = GroupResponse(group_id=wanted.group_id)
        with error_code_in(group):
            states = context.broker.share.start_offsets(wanted.group_id)
            if wanted.topics is None:
                group.topics = _all(states, context.broker)
            else:
                group.topics = _wanted(wanted, states, context.broker)
        response.groups.append(group)
    return response


def _all(states: States, broker: BrokerContext) -> list[TopicResponse]:
    topics = []
    for topic_id, numbers in by_topic(states).items():
        try:
            name = broker.topics.find(None, topic_id).name
        except KafkaError:  # The topic was deleted a moment ago.
            continue
        partitions = [_partition(PartitionId(topic_id, number), states, broker) for number in numbers]
        topics.append(TopicResponse(topic_name=name, topic_id=topic_id, partitions=partitions))
    return topics


def _wanted(wanted: WantedGroup, states: States, broker: BrokerContext) -> list[TopicResponse]:
    topics = []
    for each in wanted.topics or ():
        topics.append(topic_response := TopicResponse(topic_name=each.topic_name))
        topic = broker.topics.get(each.topic_name)
        if topic is not None:
            topic_response.topic_id = topic.id
        for number in each.partitions:
            if topic is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                failed = PartitionResponse(partition_index=number, start_offset=NO_START_OFFSET, error_code=code)
                topic_response.partitions.append(failed)
            else:
                topic_response.partitions.append(_partition(PartitionId(topic.id, number), states, broker))
    return topics


def _partition(partition: PartitionId, states: States, broker: BrokerContext) -> PartitionResponse:
    state = states.get(partition)
    if state is None:
        return PartitionResponse(partition_index=partition.partition, start_offset=NO_START_OFFSET)
    response = PartitionResponse(
        partition_index=partition.partition, start_offset=state.start_offset, leader_epoch=state.leader_epoch
    )
    with error_code_in(response):
        log = broker.topics.find(None, partition.topic_id).log(partition.partition)
        if state.start_offset != NO_START_OFFSET:
            lag = log.high_watermark - state.start_offset - max(0, state.complete_count)
            # InitializeShareGroupState accepts any start offset. So the lag can be negative, or too large for int64.
            response.lag = min(max(0, lag), INT64_MAX)
    return response
