"""Metadata: the brokers, and the topics with their partitions and leaders.

Versions: 0-13, flexible from 9.
Behaviour: names this broker, at the advertised address of the listener that the client came by, as leader of every
    partition.  A topic that is not there is made at once where the client and `auto.create.topics.enable` allow it,
    and the same answer names its leader, so that clients need no second try.  A topic asked for twice is told once.
Version notes: in 0 an empty list of topics asks for all, from 1 on null does and an empty list asks for none; 4 lets
    the client forbid automatic creation; topics by id from 12.  10 and 11 have room for an id and for no name
    already, but a request that uses it gets INVALID_REQUEST for all its topics.
Left out: racks, offline replicas: one broker has none.
"""

from __future__ import annotations

from hmb.broker.authorized import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from hmb.broker.context import RequestContext
from hmb.broker.errors import answering
from hmb.broker.topics.registry import Topic
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.metadata import MetadataRequest, MetadataResponse
from hmb.protocol.topics import OFFSETS_TOPIC, check_topic_name

TopicAnswer = MetadataResponse.MetadataResponseTopic
PartitionAnswer = TopicAnswer.MetadataResponsePartition
FIRST_VERSION_OF_IDS = 12


def handle(request: MetadataRequest, context: RequestContext) -> MetadataResponse:
    if context.version < FIRST_VERSION_OF_IDS and any(t.name is None or t.topic_id.int for t in request.topics or ()):
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
    if request.topics is None or (context.version == 0 and not request.topics):
        response.topics = [_describe(topic, TopicAnswer(), context) for topic in broker.topics.all()]
    else:
        for wanted in {(each.name, each.topic_id): each for each in request.topics}.values():
            answer = TopicAnswer(name=wanted.name, topic_id=wanted.topic_id)
            response.topics.append(answer)
            with answering(answer):
                _describe(_find(wanted, request, context), answer, context)
    if request.include_topic_authorized_operations:
        for answer in response.topics:
            answer.topic_authorized_operations = TOPIC_OPERATIONS
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def _refuse(request: MetadataRequest) -> MetadataResponse:
    """As Kafka does; the answer cannot say null."""
    return MetadataResponse(
        topics=[
            TopicAnswer(error_code=ErrorCode.INVALID_REQUEST, name=topic.name or "", topic_id=topic.topic_id)
            for topic in request.topics or ()
        ]
    )


def _find(wanted: MetadataRequest.MetadataRequestTopic, request: MetadataRequest, context: RequestContext) -> Topic:
    topics, config = context.broker.topics, context.broker.config
    may_create = request.allow_auto_topic_creation and config.auto_create_topics
    if wanted.name is not None:
        check_topic_name(wanted.name)
    if may_create and wanted.name == OFFSETS_TOPIC:
        context.broker.groups.make_topic()
    elif may_create and wanted.name is not None and wanted.name not in topics:
        try:
            return topics.create(wanted.name, config.num_partitions)
        except KafkaError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:  # else another connection was faster
                raise
    return topics.find(wanted.name, wanted.topic_id)


def _describe(topic: Topic, answer: TopicAnswer, context: RequestContext) -> TopicAnswer:
    me = context.broker.config.broker_id
    answer.name, answer.topic_id, answer.is_internal = topic.name, topic.id, topic.is_internal
    answer.partitions = [
        PartitionAnswer(
            partition_index=number, leader_id=me, leader_epoch=log.leader_epoch, replica_nodes=[me], isr_nodes=[me]
        )
        for number, log in sorted(topic.partitions.items())
    ]
    return answer
