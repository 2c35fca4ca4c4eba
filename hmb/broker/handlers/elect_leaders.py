"""ElectLeaders: give partitions back to their preferred leaders, or to any replica that is left.

Versions: 0-2, flexible from 2.
Behaviour: the only broker leads every partition already, so the answer for each that there is is ELECTION_NOT_NEEDED.
    Who asks for all partitions gets all topics, with none of their partitions: those that need no election are only
    told to who named them.
Version notes: 0 knows the preferred leader only; 1 brought the kind of election (INVALID_REQUEST for others than these
    two), and an error for the whole answer.
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
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"there is no election of type {election_type}")
        context.broker.topics.log(topic, NO_TOPIC_ID, number)
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, "the only broker leads it")
    return result
