"""CreatePartitions: add partitions to topics.

Versions: 0-3; versions 2 and later use the flexible encoding (KIP-482).
Permissions: ALTER on each topic.
Behavior: for each topic, a request contains the total number of partitions that the topic will have. If the
    topic already has this number of partitions or more, it gets INVALID_PARTITIONS. A request can also contain
    replica assignments (lists of broker ids), one for each new partition. Each list must contain only the id of
    the broker that receives the request. If a list is different, or if the number of lists is wrong, the topic
    gets INVALID_REPLICA_ASSIGNMENT. If a request contains a topic twice, the topic gets INVALID_REQUEST. The
    broker responds when the partitions have been created.
Version notes: none. The versions differ only in their encoding.
Left out: `timeout_ms`, the time to wait for other brokers. HMB has no other brokers and ignores this field, so
    this makes no difference to a client.
"""

from __future__ import annotations

from collections import Counter

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in, put_error
from hmb.broker.security.quotas.partitions import charge_partitions
from hmb.broker.shared_responses import check_named_once
from hmb.broker.topics.replicas import check_replicas
from hmb.broker.topics.topic import NewPartitions
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from hmb.protocol.topics import NO_TOPIC_ID

Wanted = CreatePartitionsRequest.CreatePartitionsTopic
TopicResponse = CreatePartitionsResponse.CreatePartitionsTopicResult


def handle(request: CreatePartitionsRequest, context: RequestContext) -> CreatePartitionsResponse:
    response = CreatePartitionsResponse()
    times = Counter(topic.name for topic in request.topics)
    grown: list[tuple[TopicResponse, NewPartitions]] = []
    for wanted in {topic.name: topic for topic in request.topics}.values():
        topic_response = TopicResponse(name=wanted.name)
        response.results.append(topic_response)
        with error_code_in(topic_response):
            check_named_once(times[wanted.name])
            checked = _checked(wanted, context)
            if not request.validate_only:
                new = checked.total - len(checked.topic.partitions)
                charge_partitions(context, new, CreatePartitionsResponse.FIRST_VERSION_OF_THROTTLING)
            grown.append((topic_response, checked))
    if not request.validate_only:
        outcomes = context.broker.topics.add_partitions([partitions for _, partitions in grown])
        for (topic_response, _), outcome in zip(grown, outcomes, strict=True):
            put_error(topic_response, outcome)
    return response


def _checked(wanted: Wanted, context: RequestContext) -> NewPartitions:
    topics = context.broker.topics
    topic = topics.find(wanted.name, NO_TOPIC_ID)
    topics.check_growth(topic, wanted.count)
    if wanted.assignments is not None:
        added = wanted.count - len(topic.partitions)
        if len(wanted.assignments) != added:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{added} new partitions, but {len(wanted.assignments)} assignments",
            )
        for assignment in wanted.assignments:
            check_replicas(assignment.broker_ids, context.broker.config.broker_id)
    return NewPartitions(topic, wanted.count)
