"""DeleteTopics: delete topics with all their records.

Versions: 0-6; versions 4 and later use the flexible encoding (KIP-482).
Permissions: DELETE on each topic.
Behavior: each topic has its own error code. The broker responds after it has deleted the topics. If a request
    contains a topic twice, the broker does not delete this topic, and returns INVALID_REQUEST for it.
Version notes: from version 6 on, a request can identify a topic by its id instead of its name. An entry must
    contain either the name or the id. For every other entry, the broker returns INVALID_REQUEST.
Left out: `timeout_ms`, the time to wait for other brokers. HMB has no other brokers, so this makes no
    difference to a client.
"""

from __future__ import annotations

from collections import Counter

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in, put_error
from hmb.broker.security.quotas.partitions import charge_partitions
from hmb.broker.shared_responses import check_named_once
from hmb.broker.topics.registry import Topics
from hmb.broker.topics.topic import Topic
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

Wanted = DeleteTopicsRequest.DeleteTopicState
TopicResponse = DeleteTopicsResponse.DeletableTopicResult


def handle(request: DeleteTopicsRequest, context: RequestContext) -> DeleteTopicsResponse:
    response = DeleteTopicsResponse()
    doomed: list[tuple[TopicResponse, Topic]] = []
    all_wanted = [*request.topics, *(Wanted(name=name) for name in request.topic_names)]
    identities = [_identity(wanted, context.broker.topics) for wanted in all_wanted]
    times = Counter(identities)
    for wanted, identity in zip(all_wanted, identities, strict=True):
        count, times[identity] = times[identity], 0
        if not count:
            continue  # The topic is already in the response.
        topic_response = TopicResponse(name=wanted.name, topic_id=wanted.topic_id)
        response.responses.append(topic_response)
        with error_code_in(topic_response):
            if (wanted.name is None) != bool(wanted.topic_id.int):
                raise KafkaError(ErrorCode.INVALID_REQUEST, "a topic needs either a name or an id, not both")
            check_named_once(count)
            topic = context.broker.topics.find(wanted.name, wanted.topic_id)
            topic_response.name, topic_response.topic_id = topic.name, topic.id
            charge_partitions(context, len(topic.partitions), DeleteTopicsResponse.FIRST_VERSION_OF_THROTTLING)
            doomed.append((topic_response, topic))
    outcomes = context.broker.topics.delete([topic for _, topic in doomed], context.broker.on_topics_deleted)
    for (topic_response, _), outcome in zip(doomed, outcomes, strict=True):
        put_error(topic_response, outcome)
    return response


def _identity(wanted: Wanted, topics: Topics) -> object:
    """Return a key for an entry of the request. Two entries have the same key if they mean the same topic.

    The handler uses the keys to find topics that the request contains twice.

    An entry is invalid if it has both a name and an id, or neither of them. The key of an invalid entry is
    different from all other keys.
    """
    if (wanted.name is None) != bool(wanted.topic_id.int):
        return object()
    topic = topics.get(wanted.name) if wanted.name is not None else None
    return topic.id if topic is not None else wanted.name or wanted.topic_id
