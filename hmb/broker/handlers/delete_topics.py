"""DeleteTopics: delete topics with all their records.

Versions: 0-6, flexible from 4.
Behaviour: done when it is answered.  Each topic has its own error code.
Version notes: 6 names topics by name or by id, never by both (INVALID_REQUEST).
Left out: quotas.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import answering
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

Wanted = DeleteTopicsRequest.DeleteTopicState
Answer = DeleteTopicsResponse.DeletableTopicResult


def handle(request: DeleteTopicsRequest, context: RequestContext) -> DeleteTopicsResponse:
    response = DeleteTopicsResponse()
    for wanted in [*request.topics, *(Wanted(name=name) for name in request.topic_names)]:
        answer = Answer(name=wanted.name, topic_id=wanted.topic_id)
        response.responses.append(answer)
        with answering(answer):
            if wanted.name is not None and wanted.topic_id.int:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "a topic is named by its name or its id, not by both")
            topic = context.broker.topics.find(wanted.name, wanted.topic_id)
            answer.name, answer.topic_id = topic.name, topic.id
            context.broker.topics.delete(topic)
    return response
