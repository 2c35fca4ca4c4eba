"""AlterPartitionReassignments: move partitions to other brokers, or cancel a move.

Versions: 0-1; all use the flexible encoding (KIP-482).
Permissions: ALTER on the cluster.
Behavior: for each partition, the request contains null, or a list of the brokers that must store the
    partition. HMB has one broker, which already stores all partitions. The broker answers by these rules:
    - *Only this broker.* If the list contains exactly this broker, the response contains no error.
    - *Other lists.* Any other list gets INVALID_REPLICA_ASSIGNMENT.
    - *Null.* In Kafka, null cancels the move of a partition. HMB never moves partitions, so the error is
      NO_REASSIGNMENT_IN_PROGRESS.
Version notes: version 1 adds a field that allows or forbids a change of the number of replicas. HMB ignores
    this field, because each partition always has one replica.
Left out: moves of partitions, because HMB has no second broker. A tool therefore cannot use this API to
    balance the load of brokers.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.topics.replicas import check_replicas
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from hmb.protocol.topics import NO_TOPIC_ID

Wanted = AlterPartitionReassignmentsRequest.ReassignableTopic.ReassignablePartition
TopicResponse = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
PartitionResponse = TopicResponse.ReassignablePartitionResponse


def handle(request: AlterPartitionReassignmentsRequest, context: RequestContext) -> AlterPartitionReassignmentsResponse:
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, error_message=None
    )
    for topic in request.topics:
        partitions = [_partition_response(topic.name, wanted, context) for wanted in topic.partitions]
        response.responses.append(TopicResponse(name=topic.name, partitions=partitions))
    return response


def _partition_response(topic: str, wanted: Wanted, context: RequestContext) -> PartitionResponse:
    response = PartitionResponse(partition_index=wanted.partition_index, error_message=None)
    with error_code_in(response):
        context.broker.topics.log(topic, NO_TOPIC_ID, wanted.partition_index)
        if wanted.replicas is None:
            raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "this partition is not being moved")
        check_replicas(wanted.replicas, context.broker.config.broker_id)
    return response
