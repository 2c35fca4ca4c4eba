"""CreateTopics: create topics.

Versions: 0-7; versions 5 and later use the flexible encoding (KIP-482).
Permissions: CREATE on the cluster, or on each topic; for the settings in the response, DESCRIBE_CONFIGS.
Behavior: each topic has its own error code and error message. These rules apply to each topic:
    - *Number of partitions.* If the number is -1, the topic gets `num.partitions` partitions.
    - *Replication factor.* The factor must be 1, or -1 for the default. Any other factor gets
      INVALID_REPLICATION_FACTOR, because there is only one broker.
    - *Replica assignments.* A request can contain a list of brokers for each of the partitions 0, 1, 2, ... The
      number of partitions and the replication factor must then be -1. Otherwise, the error is INVALID_REQUEST. Each
      list must contain only this broker, and the partition numbers must have no gaps. Otherwise, the error is
      INVALID_REPLICA_ASSIGNMENT.
    - *Several errors.* The response contains only the first error of a topic. The checks have Kafka's order:
      name, settings, number of partitions, replicas.
Version notes: Kafka defines the value -1 (the broker's default) for the number of partitions and for the
    replication factor only from version 4 on. HMB accepts -1 in all versions.
Left out: `timeout_ms`, the time to wait for other brokers. HMB has no other brokers, so this makes no
    difference to a client.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hmb.broker.config.entries import topic_entries
from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in, put_error
from hmb.broker.security.quotas.partitions import charge_partitions
from hmb.broker.shared_responses import check_named_once
from hmb.broker.topics.topic import NewPartitions, Topic
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

Wanted = CreateTopicsRequest.CreatableTopic
TopicResponse = CreateTopicsResponse.CreatableTopicResult
DEFAULT = -1


def handle(request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
    response = CreateTopicsResponse()
    times = Counter(topic.name for topic in request.topics)
    new: list[tuple[TopicResponse, NewPartitions]] = []
    for wanted in {topic.name: topic for topic in request.topics}.values():
        topic_response = TopicResponse(name=wanted.name, error_message=None)
        response.topics.append(topic_response)
        with error_code_in(topic_response):
            check_named_once(times[wanted.name])
            checked = _checked(wanted, context)
            if not request.validate_only:
                charge_partitions(context, checked.total, CreateTopicsResponse.FIRST_VERSION_OF_THROTTLING)
            new.append((topic_response, checked))
    outcomes = _create([topic for _, topic in new], request, context)
    # New topics with the same settings share one list of settings in the response. One list for each topic would take
    # more time than all other work of the handler.
    configs: dict[frozenset[tuple[str, str]], list[TopicResponse.CreatableTopicConfigs]] = {}
    for (topic_response, (topic, count)), outcome in zip(new, outcomes, strict=True):
        if outcome is None:
            topic_response.topic_id, topic_response.num_partitions = topic.id, count
            topic_response.replication_factor = 1
            if (own := frozenset(topic.configs.items())) not in configs:
                configs[own] = _configs(topic, context)
            topic_response.configs = configs[own]
        put_error(topic_response, outcome)
    return response


def _create(
    new: Sequence[NewPartitions], request: CreateTopicsRequest, context: RequestContext
) -> Sequence[KafkaError | None]:
    if request.validate_only:
        return [None] * len(new)
    return context.broker.topics.create_all(new)


def _checked(wanted: Wanted, context: RequestContext) -> NewPartitions:
    """Check one topic of the request, and return its new partitions. Raises KafkaError if the check fails."""
    configs = {}
    for config in wanted.configs:
        if config.value is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{config.name}: the value is null")
        configs[config.name] = config.value
    partitions = _partitions(wanted, context)
    topic = context.broker.topics.check(wanted.name, partitions, configs)
    _check_replicas(wanted, context)
    return NewPartitions(topic, partitions)


def _partitions(wanted: Wanted, context: RequestContext) -> int:
    if wanted.assignments:
        if wanted.num_partitions != DEFAULT or wanted.replication_factor != DEFAULT:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "the number of partitions and the replication factor must be -1 if the request assigns replicas",
            )
        return len(wanted.assignments)
    return context.broker.config.num_partitions if wanted.num_partitions == DEFAULT else wanted.num_partitions


def _check_replicas(wanted: Wanted, context: RequestContext) -> None:
    if wanted.assignments:
        if sorted(a.partition_index for a in wanted.assignments) != list(range(len(wanted.assignments))):
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions must have the numbers 0, 1, 2, ...")
        if any(a.broker_ids != [context.broker.config.broker_id] for a in wanted.assignments):
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"each partition must have one replica, on broker {context.broker.config.broker_id}",
            )
    elif wanted.replication_factor not in (DEFAULT, 1):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"the replication factor must be 1, not {wanted.replication_factor}: the cluster has only one broker",
        )


def _configs(topic: Topic, context: RequestContext) -> list[TopicResponse.CreatableTopicConfigs]:
    return [
        TopicResponse.CreatableTopicConfigs(name=entry.key.name, value=entry.value, config_source=entry.source)
        for entry in topic_entries(topic.configs, context.broker.configs)
    ]
