"""DescribeQuorum: return the leader and the voters of the log that the cluster's controllers replicate.

Versions: 0-2; all use the flexible encoding (KIP-482).
Permissions: DESCRIBE on the cluster.
Behavior: in Kafka, the topic `__cluster_metadata` contains the cluster's metadata. Each controller has a replica of
    this topic. HMB has no such topic, because it is a single broker that stores its metadata in files. The response
    describes partition 0 of the topic as if it existed: the broker is the partition's leader and only voter, and the
    offsets are 0. If a request names any other partition, all partitions in the request get
    UNKNOWN_TOPIC_OR_PARTITION.
Version notes: version 2 adds the address of each controller, and the directory id of each replica. HMB's data directory
    has no id, so the directory id is zero.
Left out: followers and observers. HMB has no other controllers, so no controller has to catch up with the leader.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.describe_quorum import (
    FIRST_VERSION_OF_NODES,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ReplicaState,
)
from hmb.storage.state.partition_directory import KAFKA_METADATA_TOPIC
from hmb.units import now_ms

TopicResponse = DescribeQuorumResponse.TopicData
PartitionResponse = TopicResponse.PartitionData
Node = DescribeQuorumResponse.Node


def handle(request: DescribeQuorumRequest, context: RequestContext) -> DescribeQuorumResponse:
    named = [(topic.topic_name, each.partition_index) for topic in request.topics for each in topic.partitions]
    if named == [(KAFKA_METADATA_TOPIC, 0)]:
        return _metadata_log(context)
    response = DescribeQuorumResponse()
    for topic in request.topics:
        partitions = [_unknown(each.partition_index) for each in topic.partitions]
        response.topics.append(TopicResponse(topic_name=topic.topic_name, partitions=partitions))
    return response


def _metadata_log(context: RequestContext) -> DescribeQuorumResponse:
    listener, broker_id, now = context.listener, context.broker.config.broker_id, now_ms()
    voter = ReplicaState(replica_id=broker_id, last_fetch_timestamp=now, last_caught_up_timestamp=now)
    partition = PartitionResponse(partition_index=0, leader_id=broker_id, current_voters=[voter])
    response = DescribeQuorumResponse(topics=[TopicResponse(topic_name=KAFKA_METADATA_TOPIC, partitions=[partition])])
    if context.version >= FIRST_VERSION_OF_NODES:
        address = Node.Listener(name=listener.name, host=listener.advertised_host, port=listener.advertised_port)
        response.nodes = [Node(node_id=broker_id, listeners=[address])]
    return response


def _unknown(partition: int) -> PartitionResponse:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return PartitionResponse(partition_index=partition, error_code=error, error_message=error.message)
