"""StreamsGroupHeartbeat: join, leave or stay in a streams group (KIP-1071).

Versions: 0; in the flexible encoding (KIP-482).
Permissions: READ on the group, DESCRIBE on each topic; CREATE for new internal topics.
Behavior: the broker answers each heartbeat by these rules:
    - *Assignment.* The broker assigns the tasks of a Kafka Streams application to the members of the group
      (coordinator/streams/). If the tasks of a member have changed, the response contains its new tasks. The broker
      writes the changes of the group to disk before it responds.
    - *Status.* If the application cannot run all its tasks, the response contains a status with the reason, for
      example MISSING_SOURCE_TOPICS.
    - *Internal topics.* If a repartition topic or a changelog topic is missing, the broker creates it. The same
      checks and the same quota apply as for a CreateTopics request of the member.
Version notes: none.
Left out: static members, warm-up tasks, offsets of tasks, and regular expressions for source topics. A request with
    one of these features gets INVALID_REQUEST, as in Kafka 4.3. The application must then use the classic protocol.
    A topology with more than 100,000 tasks gets STREAMS_INVALID_TOPOLOGY, and the application cannot run. Kafka has
    no such limit.
"""

from __future__ import annotations

from collections.abc import Sequence

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.handlers import create_topics
from hmb.coordinator.streams.requests import StreamsGroupRequests
from hmb.coordinator.streams.topics import InternalTopic
from hmb.protocol.enums import StreamsStatus
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse

NewTopic = CreateTopicsRequest.CreatableTopic
MAX_ERRORS = 3  # the maximum number of failed topics that one error message lists
HARMLESS = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)  # Another member's heartbeat may have created the topic.


def handle(request: StreamsGroupHeartbeatRequest, context: RequestContext) -> StreamsGroupHeartbeatResponse:
    response = StreamsGroupHeartbeatResponse()
    streams = StreamsGroupRequests(context.broker.groups)
    with error_code_in(response):
        response, missing = streams.heartbeat(request, context.client_id, context.client_host)
        if missing and (problem := _create_topics(missing, context)):
            for status in response.status or ():
                if status.status_code == StreamsStatus.MISSING_INTERNAL_TOPICS:
                    status.status_detail += f"; {problem}."
    return response


def _create_topics(missing: Sequence[InternalTopic], context: RequestContext) -> str:
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
    more = f" and {len(errors) - MAX_ERRORS} more" if len(errors) > MAX_ERRORS else ""
    return f"Creation failed: {', '.join(errors[:MAX_ERRORS])}{more}" if errors else ""


def _new(topic: InternalTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor or create_topics.DEFAULT,
        configs=[NewTopic.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )
