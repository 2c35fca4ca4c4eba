"""DeleteShareGroupOffsets: delete the offsets that a share group has for the given topics (KIP-932).

Versions: 0; in the flexible encoding (KIP-482).
Permissions: DELETE on the group; READ on each topic.
Behavior: the broker deletes the offsets of the group for each topic in the request. If a member subscribes to
    such a topic again, the group begins as if it had never read the topic. If the group has members, the broker
    deletes nothing, and the error is NON_EMPTY_GROUP. A topic that does not exist gets
    UNKNOWN_TOPIC_OR_PARTITION.
Version notes: none. The API has one version.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in, put_error
from hmb.coordinator.group_table import check_group_id
from hmb.protocol.errors import KafkaError
from hmb.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from hmb.protocol.topics import NO_TOPIC_ID

TopicResponse = DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic


def handle(request: DeleteShareGroupOffsetsRequest, context: RequestContext) -> DeleteShareGroupOffsetsResponse:
    response = DeleteShareGroupOffsetsResponse()
    topic_ids = []
    for each in request.topics:
        response.responses.append(topic_response := TopicResponse(topic_name=each.topic_name))
        with error_code_in(topic_response):
            topic = context.broker.topics.find(each.topic_name, NO_TOPIC_ID)
            topic_response.topic_id = topic.id
            topic_ids.append(topic.id)
    try:
        check_group_id(request.group_id)
        context.broker.share.delete_offsets(request.group_id, topic_ids)
    except KafkaError as error:
        response.responses.clear()
        put_error(response, error)
    return response
