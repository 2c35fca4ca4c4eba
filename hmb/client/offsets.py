"""Where a partition's log begins and ends: ListOffsets, asked of the leaders.

One question, with magic timestamps: -2 is the first offset, -1 the one after the last record, and any other number
the first record at or after that time. Version 0 (Kafka before 0.10.1) answers with a list of offsets, newest first.
"""

from collections.abc import Iterable

from hmb.client.errors import answered_error
from hmb.client.metadata import Cluster, Node, TopicPartition
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

LATEST = -1
EARLIEST = -2

PartitionRequest = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
PartitionResponse = ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse


def list_offsets(cluster: Cluster, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
    """The offset of a timestamp, or of EARLIEST or LATEST, in each partition; KafkaError for the first that fails."""
    by_leader: dict[Node, list[TopicPartition]] = {}
    for partition in partitions:
        leader = cluster.topic(partition.topic).leaders.get(partition.partition)
        if leader is None:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader at the moment")
        by_leader.setdefault(leader, []).append(partition)
    offsets: dict[TopicPartition, int] = {}
    for leader, asked in by_leader.items():
        with cluster.connect(leader) as connection:
            version = connection.version_of(ListOffsetsRequest)
            response: ListOffsetsResponse = connection.send(_request(asked, timestamp), version)
            for topic in response.topics:
                for answer in topic.partitions:
                    partition = TopicPartition(topic.name, answer.partition_index)
                    offsets[partition] = _offset(partition, answer, version)
    return offsets


def _request(partitions: list[TopicPartition], timestamp: int) -> ListOffsetsRequest:
    topics: dict[str, ListOffsetsRequest.ListOffsetsTopic] = {}
    for name, partition in partitions:
        topic = topics.setdefault(name, ListOffsetsRequest.ListOffsetsTopic(name=name))
        topic.partitions.append(PartitionRequest(partition_index=partition, timestamp=timestamp))
    return ListOffsetsRequest(replica_id=-1, topics=list(topics.values()))


def _offset(partition: TopicPartition, answer: PartitionResponse, version: int) -> int:
    if answer.error_code:
        raise answered_error(partition, answer.error_code)
    if version == 0:
        return answer.old_style_offsets[0] if answer.old_style_offsets else -1
    return answer.offset
