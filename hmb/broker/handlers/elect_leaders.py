"""ElectLeaders: elect leaders for partitions.

Versions: 0-2; version 2 uses the flexible encoding (KIP-482).
Permissions: ALTER on the cluster.
Behavior: HMB's only broker leads all partitions, so no partition needs an election. If a request names
    partitions, each existing partition gets ELECTION_NOT_NEEDED. Null instead of a list of topics means all
    partitions. As in Kafka, the response to null lists only partitions that need an election, so HMB's response
    to null contains all topics, but no partitions.
Version notes: version 1 adds the type of the election. An unknown type gets INVALID_REQUEST. In version 0, the
    type is always "preferred".
Left out: `timeout_ms`. The broker never has to wait for an election, so a client sees no difference.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
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
    with error_code_in(result):
        if election_type not in (PREFERRED, UNCLEAN):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"election type {election_type} does not exist")
        context.broker.topics.log(topic, NO_TOPIC_ID, number)
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, "this broker is already the leader")
    return result
