"""Metadata: return the brokers of the cluster, and topics with their partitions and leaders.

Versions: 0-13; versions 9 and later use the flexible encoding (KIP-482).
Permissions: DESCRIBE on each topic; for a new topic, CREATE on the topic or on the cluster.
Behavior: this broker is the leader of all partitions. It follows these rules:
    - *Address.* A client connects to a listener of the broker. The response contains the advertised address of this
      listener.
    - *Missing topics.* If a requested topic does not exist, the broker creates it, unless the client or the setting
      `auto.create.topics.enable` forbids this. The response already contains the new topic, so the client does not
      have to ask again.
    - *Limit.* A request must not take too long. It creates topics with at most 100 partitions in total
      (MAX_CREATED_PARTITIONS), or one larger topic. For example, if `num.partitions` is 40, a request creates at most
      two topics. The other missing topics get LEADER_NOT_AVAILABLE, and the client asks for them again.
    - *Repetitions.* If a request contains a topic twice, the response contains it once.
Version notes: an empty list requests all topics in version 0, and no topic in later versions. Versions 10 and 11 have a
    field for the id of a topic. If a request uses this field, the response contains INVALID_REQUEST for all its topics.
Left out: racks and offline replicas, which exist only with several brokers. While the broker is down, a client cannot
    use another replica.
"""

from __future__ import annotations

from collections.abc import Mapping

from hmb.broker.authorized import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.topics.topic import NewPartitions, Topic
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.metadata import MetadataRequest, MetadataResponse
from hmb.protocol.topics import OFFSETS_TOPIC, check_topic_name

TopicResponse = MetadataResponse.MetadataResponseTopic
PartitionResponse = TopicResponse.MetadataResponsePartition
MAX_CREATED_PARTITIONS = 100


def handle(request: MetadataRequest, context: RequestContext) -> MetadataResponse:
    if request.has_ids_too_early(context.version):
        return _refuse(request)
    broker, listener = context.broker, context.listener
    response = MetadataResponse(
        brokers=[
            MetadataResponse.MetadataResponseBroker(
                node_id=broker.config.broker_id, host=listener.advertised_host, port=listener.advertised_port
            )
        ],
        cluster_id=broker.cluster_id,
        controller_id=broker.config.broker_id,
    )
    if request.is_for_all_topics(context.version):
        response.topics = [_describe(topic, TopicResponse(), context) for topic in broker.topics.all()]
    else:
        failures = _make_missing(request, context)
        for wanted in {(each.name, each.topic_id): each for each in request.topics or ()}.values():
            topic_response = TopicResponse(name=wanted.name, topic_id=wanted.topic_id)
            response.topics.append(topic_response)
            with error_code_in(topic_response):
                _describe(_find(wanted, failures, context), topic_response, context)
    if request.include_topic_authorized_operations:
        for topic_response in response.topics:
            topic_response.topic_authorized_operations = TOPIC_OPERATIONS
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def _refuse(request: MetadataRequest) -> MetadataResponse:
    """Return a response that contains the error INVALID_REQUEST for each topic of the request.

    If a topic in the request has no name, its name in the response is "", as in Kafka.
    """
    return MetadataResponse(
        topics=[
            TopicResponse(error_code=ErrorCode.INVALID_REQUEST, name=topic.name or "", topic_id=topic.topic_id)
            for topic in request.topics or ()
        ]
    )


def _make_missing(request: MetadataRequest, context: RequestContext) -> Mapping[str, KafkaError]:
    """Create the requested topics that do not exist, if the request and the broker's settings allow it.

    Return a dict with the topics that the broker could not create: topic name -> error.
    """
    topics, config = context.broker.topics, context.broker.config
    named = [each.name for each in request.topics or () if not each.topic_id.int]
    names = {name for name in named if name is not None and name not in topics}
    if not (names and request.allow_auto_topic_creation and config.auto_create_topics):
        return {}
    if OFFSETS_TOPIC in names:
        context.broker.groups.make_topic()
        names.discard(OFFSETS_TOPIC)
    failures: dict[str, KafkaError] = {}
    new: dict[str, NewPartitions] = {}
    most = max(1, MAX_CREATED_PARTITIONS // config.num_partitions)
    for name in sorted(names):
        try:
            topic = topics.check(name, config.num_partitions, {})
        except KafkaError as error:
            failures[name] = error
            continue
        if len(new) < most:
            new[name] = NewPartitions(topic, config.num_partitions)
        else:
            failures[name] = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
    outcomes = topics.create_all(list(new.values()))
    return failures | {name: outcome for name, outcome in zip(new, outcomes, strict=True) if outcome is not None}


def _find(
    wanted: MetadataRequest.MetadataRequestTopic, failures: Mapping[str, KafkaError], context: RequestContext
) -> Topic:
    if wanted.name is not None:
        check_topic_name(wanted.name)
        failure = failures.get(wanted.name)
        if failure is not None and failure.code is not ErrorCode.TOPIC_ALREADY_EXISTS:  # Another client was faster.
            raise failure
    return context.broker.topics.find(wanted.name, wanted.topic_id)


def _describe(topic: Topic, topic_response: TopicResponse, context: RequestContext) -> TopicResponse:
    me = context.broker.config.broker_id
    topic_response.name, topic_response.topic_id, topic_response.is_internal = topic.name, topic.id, topic.is_internal
    topic_response.partitions = [
        PartitionResponse(
            partition_index=number, leader_id=me, leader_epoch=log.leader_epoch, replica_nodes=[me], isr_nodes=[me]
        )
        for number, log in sorted(topic.partitions.items())
    ]
    return topic_response
