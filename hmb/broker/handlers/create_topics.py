"""CreateTopics: make topics.

Versions: 0-7, flexible from 5.
Behaviour: each topic has its own error code and message.  Partitions -1 means `num.partitions`; the replication
    factor is 1, or -1 for the default, and above the number of brokers, which is one, it is
    INVALID_REPLICATION_FACTOR.  A replica assignment by hand must name this broker only and number its partitions
    from 0.  What is wrong is told in Kafka's order: the name, the settings, the partitions, the replicas.
Version notes: 1 brought `validate_only` and messages, 4 the defaults by -1, 5 the settings in the answer, 7 the
    topic's id.
Left out: quotas (`throttle_time_ms` is 0).
"""

from __future__ import annotations

from collections import Counter

from hmb.broker.config.entries import topic_entries
from hmb.broker.context import RequestContext
from hmb.broker.errors import answering
from hmb.broker.topics.registry import Topic
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

Wanted = CreateTopicsRequest.CreatableTopic
Answer = CreateTopicsResponse.CreatableTopicResult
DEFAULT = -1


def handle(request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
    response = CreateTopicsResponse()
    times = Counter(topic.name for topic in request.topics)
    for wanted in request.topics:
        if times[wanted.name] > 1:
            if not any(answer.name == wanted.name for answer in response.topics):
                message = "duplicate topic in the request"
                response.topics.append(
                    Answer(name=wanted.name, error_code=ErrorCode.INVALID_REQUEST, error_message=message)
                )
            continue
        answer = Answer(name=wanted.name, error_message=None)
        response.topics.append(answer)
        with answering(answer):
            _create(wanted, answer, request.validate_only, context)
    return response


def _create(wanted: Wanted, answer: Answer, validate_only: bool, context: RequestContext) -> None:
    configs = {}
    for config in wanted.configs:
        if config.value is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{config.name}: null is no value")
        configs[config.name] = config.value
    partitions = _partitions(wanted, context)
    context.broker.topics.check(wanted.name, partitions, configs)
    _check_replicas(wanted, context)
    topic = context.broker.topics.create(wanted.name, partitions, configs, validate_only=validate_only)
    answer.topic_id = topic.id
    answer.num_partitions, answer.replication_factor = partitions, 1
    answer.configs = _configs(topic, context)


def _partitions(wanted: Wanted, context: RequestContext) -> int:
    if wanted.assignments:
        if wanted.num_partitions != DEFAULT or wanted.replication_factor != DEFAULT:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "an assignment says it all: partitions and replication factor must be -1"
            )
        return len(wanted.assignments)
    return context.broker.config.num_partitions if wanted.num_partitions == DEFAULT else wanted.num_partitions


def _check_replicas(wanted: Wanted, context: RequestContext) -> None:
    if wanted.assignments:
        if sorted(a.partition_index for a in wanted.assignments) != list(range(len(wanted.assignments))):
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions must be numbered 0, 1, 2 ...")
        if any(a.broker_ids != [context.broker.config.broker_id] for a in wanted.assignments):
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"the only broker is {context.broker.config.broker_id}"
            )
    elif wanted.replication_factor not in (DEFAULT, 1):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR, f"replication factor {wanted.replication_factor}: there is one broker"
        )


def _configs(topic: Topic, context: RequestContext) -> list[Answer.CreatableTopicConfigs]:
    return [
        Answer.CreatableTopicConfigs(name=entry.key.name, value=entry.value, config_source=entry.source)
        for entry in topic_entries(topic.configs, context.broker.configs)
    ]
