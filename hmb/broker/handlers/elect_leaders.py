"""ElectLeaders: make the preferred replica, or any replica, the leader of partitions.

Versions: 0-2, flexible from 2.
Behavior: the only broker is the leader of every partition already, so each existing partition gets
    ELECTION_NOT_NEEDED. A request for all partitions gets all topics without partitions, because partitions that need
    no election are returned only to a client that named them.
Version notes: version 0 elects only preferred leaders. Version 1 adds the type of election (INVALID_REQUEST for unknown
    types), and an error for the whole response.
Left out: nothing.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import answering
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from hmb.protocol.topics import NO_TOPIC_ID

TopicResult = ElectLeadersResponse.ReplicaElectionResult
PartitionResult = TopicResult.PartitionResult
PREFERRED, UNCLEAN = 0, 1


def handle(request: ElectLeadersRequest, context: RequestContext) -> ElectLeadersResponse:
    response = ElectLeadersResponse()
    if request.election_type not in (PREFERRED, UNCLEAN):
        response.error_code = ErrorCode.INVALID_REQUEST
    wanted = request.topic_partitions
    if wanted is None:
        wanted = [ElectLeadersRequest.TopicPartitions(topic=topic.name) for topic in context.broker.topics.all()]
    for topic in wanted:
        results = [_result(topic.topic, number, request.election_type, context) for number in topic.partitions]
        response.replica_election_results.append(TopicResult(topic=topic.topic, partition_result=results))
    return response


def _result(topic: str, number: int, election_type: int, context: RequestContext) -> PartitionResult:
    result = PartitionResult(partition_id=number)
    with answering(result):
        if election_type not in (PREFERRED, UNCLEAN):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"election type {election_type} does not exist")
        context.broker.topics.log(topic, NO_TOPIC_ID, number)
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, "this broker is the leader already")
    return result
