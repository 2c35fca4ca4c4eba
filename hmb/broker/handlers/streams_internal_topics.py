"""Creates the internal topics of a streams group: its repartition topics and its changelog topics (KIP-1071).

The coordinator computes which internal topics the topology of a group needs (coordinator/streams/topics.py). If a topic
is missing at a heartbeat, the broker creates the topic in the name of the member that sent the heartbeat. The topic is
created as if this member had sent a CreateTopics request. The handler of CreateTopics therefore checks the new topic,
and counts it for the quota of the member. The member also needs the permission to create the topic.
"""

from __future__ import annotations

from collections.abc import Sequence

from hmb.broker.context import RequestContext
from hmb.broker.handlers import create_topics
from hmb.coordinator.streams.topics import InternalTopic
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.create_topics import CreateTopicsRequest

NewTopic = CreateTopicsRequest.CreatableTopic
MOST_ERRORS = 3  # the number of topics that an error text names
HARMLESS = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)  # Another member's heartbeat may have created the topic.


def create_internal_topics(missing: Sequence[InternalTopic], context: RequestContext) -> str:
    """Create internal topics. Return the reason why topics cannot be created, or an empty text."""
    forbidden = [topic.name for topic in missing if not context.may_create(topic.name)]
    if forbidden:
        return f"Unauthorized to CREATE on topics {', '.join(forbidden)}"
    created = create_topics.handle(CreateTopicsRequest(topics=[_new(topic) for topic in missing]), context)
    errors = [
        f"{topic.name} ({topic.error_message or ErrorCode(topic.error_code).message})"
        for topic in created.topics
        if topic.error_code not in HARMLESS
    ]
    more = f" and {len(errors) - MOST_ERRORS} more" if len(errors) > MOST_ERRORS else ""
    return f"Creation failed: {', '.join(errors[:MOST_ERRORS])}{more}" if errors else ""


def _new(topic: InternalTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor or create_topics.DEFAULT,
        configs=[NewTopic.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )
