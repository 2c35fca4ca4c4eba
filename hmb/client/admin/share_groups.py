"""Contains the methods of `Admin` that list, change and delete the offsets of share groups (KIP-932).

A share group has no committed offsets. For each partition, the broker stores the *share-partition start offset*. The
delivery of all records below this offset is complete. At or above this offset, the broker stores the delivery state of
single records: some are already complete, and some were released and wait for their next delivery.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from hmb.client.admin.brokers import Brokers
from hmb.client.admin.group_offsets import check_group
from hmb.client.connection import Connection
from hmb.client.coordinator import find_coordinator
from hmb.client.errors import response_error
from hmb.protocol.enums import CoordinatorType
from hmb.protocol.errors import KafkaError
from hmb.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from hmb.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from hmb.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from hmb.protocol.messages.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse
from hmb.protocol.topics import TopicPartition
from hmb.uuids import encode_uuid

AVAILABLE = 0  # the number of the delivery state Available
AlteredTopic = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
StateBatch = ReadShareGroupStateResponse.ReadStateResult.PartitionResult.StateBatch


class ShareOffset(NamedTuple):
    """The progress of a share group in one partition.

    A record is *complete* when the broker will not deliver the record to the group again.

    - `start_offset`: all records below this offset are complete. The value is None if the group has not yet read
      the partition.
    - `lag`: the number of records that are not complete. The value is None if the broker returns no lag, for
      example for an unread partition.
    - `complete`: the number of complete records at or above `start_offset`.
    - `released`: the number of records that wait for another delivery, because a consumer has released them or has
      not acknowledged them in time.
    - `delivery_count`: the highest number of deliveries among the released records and the complete records at or
      above `start_offset`. For example, the value is 3 if one of these records was delivered three times and the
      others once. Without such records, the value is 0.
    """

    start_offset: int | None
    lag: int | None
    complete: int
    released: int
    delivery_count: int


def list_share_offsets(brokers: Brokers, group: str) -> dict[TopicPartition, ShareOffset]:
    """Return the progress of a share group in each of its partitions. Needs Kafka 4.1."""
    kind = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    request = DescribeShareGroupOffsetsRequest(groups=[kind(group_id=group, topics=None)])

    def ask(connection: Connection) -> dict[TopicPartition, ShareOffset]:
        response: DescribeShareGroupOffsetsResponse = connection.send(request)
        (found,) = response.groups
        check_group(group, found.error_code, found.error_message)
        offsets = {}
        for topic in found.topics:
            for each in topic.partitions:
                partition = TopicPartition(topic.topic_name, each.partition_index)
                check_partition(partition, each.error_code, each.error_message)
                batches = _stored(brokers, group, topic.topic_id, each.partition_index, each.leader_epoch)
                offsets[partition] = _offset(each.start_offset, each.lag, batches)
        return offsets

    return brokers.at_coordinator(group, ask)


def _stored(brokers: Brokers, group: str, topic_id: UUID, partition: int, leader_epoch: int) -> list[StateBatch]:
    """Request the delivery states of a partition's records from the share coordinator of the partition."""
    key = f"{group}:{encode_uuid(topic_id)}:{partition}"
    data = ReadShareGroupStateRequest.ReadStateData
    wanted = [data.PartitionData(partition=partition, leader_epoch=leader_epoch)]
    request = ReadShareGroupStateRequest(group_id=group, topics=[data(topic_id=topic_id, partitions=wanted)])
    connection = brokers.connection(find_coordinator(brokers.cluster, CoordinatorType.SHARE, key))
    response: ReadShareGroupStateResponse = connection.send(request)
    (result,) = response.results[0].partitions
    return [] if result.error_code else result.state_batches


def _offset(start_offset: int, lag: int, batches: Iterable[StateBatch]) -> ShareOffset:
    complete = released = deliveries = 0
    for batch in batches:
        count = batch.last_offset - max(batch.first_offset, start_offset) + 1
        if batch.delivery_state == AVAILABLE:
            released += count
        else:
            complete += count
        deliveries = max(deliveries, batch.delivery_count)
    known = start_offset >= 0
    return ShareOffset(start_offset if known else None, lag if lag >= 0 else None, complete, released, deliveries)


def alter_share_offsets(brokers: Brokers, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Change the start offsets of a share group. Needs Kafka 4.1.

    Raises KafkaError if the group has members, or if the offset of a partition cannot be changed.
    """
    topics: dict[str, list[AlteredTopic.AlterShareGroupOffsetsRequestPartition]] = {}
    for (topic, number), offset in offsets.items():
        partition = AlteredTopic.AlterShareGroupOffsetsRequestPartition(partition_index=number, start_offset=offset)
        topics.setdefault(topic, []).append(partition)
    altered = [AlteredTopic(topic_name=topic, partitions=partitions) for topic, partitions in topics.items()]
    request = AlterShareGroupOffsetsRequest(group_id=group, topics=altered)

    def ask(connection: Connection) -> None:
        response: AlterShareGroupOffsetsResponse = connection.send(request)
        check_group(group, response.error_code, response.error_message)
        for topic in response.responses:
            for each in topic.partitions:
                where = TopicPartition(topic.topic_name, each.partition_index)
                check_partition(where, each.error_code, each.error_message)

    brokers.at_coordinator(group, ask)


def delete_share_offsets(brokers: Brokers, group: str, topics: Iterable[str]) -> dict[str, KafkaError | None]:
    """Delete a share group's offsets for all partitions of these topics. Needs Kafka 4.1.

    The group must have no members. For each topic, the result contains None if the offsets were deleted. Otherwise
    it contains the error of this topic.
    """
    kind = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic
    request = DeleteShareGroupOffsetsRequest(group_id=group, topics=[kind(topic_name=topic) for topic in topics])

    def ask(connection: Connection) -> dict[str, KafkaError | None]:
        response: DeleteShareGroupOffsetsResponse = connection.send(request)
        check_group(group, response.error_code, response.error_message)
        return {
            topic.topic_name: response_error(topic.topic_name, topic.error_code, topic.error_message)
            if topic.error_code
            else None
            for topic in response.responses
        }

    return brokers.at_coordinator(group, ask)


def check_partition(partition: TopicPartition, number: int, message: str | None) -> None:
    """Raise KafkaError for the error code `number` of a partition. The code 0 means success, and raises nothing."""
    if number:
        raise response_error(partition, number, message)
