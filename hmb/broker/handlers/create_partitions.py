"""CreatePartitions: give topics more partitions.

Versions: 0-3, flexible from 2.
Behaviour: done when it is answered, whatever the request's time limit; the next Metadata answer names them.  The count
    is that of all partitions, and must be larger than the one there is (INVALID_PARTITIONS).  Assignments by hand are
    those of the new partitions, one for each, on this broker.  A topic that is named twice gets INVALID_REQUEST.
Version notes: none but for flexible versions.
Left out: quotas.
"""

from __future__ import annotations

from collections import Counter

from hmb.broker.context import RequestContext
from hmb.broker.errors import answering
from hmb.broker.topics.replicas import check_replicas
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from hmb.protocol.topics import NO_TOPIC_ID

Wanted = CreatePartitionsRequest.CreatePartitionsTopic
Answer = CreatePartitionsResponse.CreatePartitionsTopicResult


def handle(request: CreatePartitionsRequest, context: RequestContext) -> CreatePartitionsResponse:
    response = CreatePartitionsResponse()
    times = Counter(topic.name for topic in request.topics)
    for wanted in {topic.name: topic for topic in request.topics}.values():
        answer = Answer(name=wanted.name)
        response.results.append(answer)
        with answering(answer):
            if times[wanted.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "this topic is named twice")
            _add(wanted, request.validate_only, context)
    return response


def _add(wanted: Wanted, validate_only: bool, context: RequestContext) -> None:
    topics = context.broker.topics
    topic = topics.find(wanted.name, NO_TOPIC_ID)
    topics.add_partitions(topic, wanted.count, validate_only=True)
    if wanted.assignments is not None:
        added = wanted.count - len(topic.partitions)
        if len(wanted.assignments) != added:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{added} new partitions, but {len(wanted.assignments)} assignments",
            )
        for assignment in wanted.assignments:
            check_replicas(assignment.broker_ids, context.broker.config.broker_id)
    if not validate_only:
        topics.add_partitions(topic, wanted.count)
