"""DescribeTopicPartitions: describe topics, with a limited number of partitions in each response.

Versions: 0; in the flexible encoding (KIP-482).
Permissions: DESCRIBE on each topic.
Behavior: the response contains the requested topics, or all topics if the request names none. The topics are
    sorted by name, and each topic appears once. These rules apply to long responses:
    - *Limits.* The request's `response_partition_limit` and the broker's setting
      `max.request.partition.size.limit` both limit the number of partitions in a response. A limit below 1
      counts as 1. An unknown topic does not count.
    - *Cursor.* If some partitions do not fit, the response contains a cursor: the topic and the number of the
      next partition. The client sends this cursor in its next request, and the broker continues there.
Version notes: none.
Left out: eligible leader replicas and racks. They only matter if several brokers have copies of a partition.
    HMB is a single broker.
"""

from __future__ import annotations

from bisect import bisect_left

from hmb.broker.authorized import TOPIC_OPERATIONS
from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.topics.topic import Topic
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from hmb.protocol.topics import NO_TOPIC_ID, check_topic_name

TopicResponse = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
PartitionResponse = TopicResponse.DescribeTopicPartitionsResponsePartition


def handle(request: DescribeTopicPartitionsRequest, context: RequestContext) -> DescribeTopicPartitionsResponse:
    names = sorted({topic.name for topic in request.topics} or {topic.name for topic in context.broker.topics.all()})
    cursor = request.cursor
    if cursor is not None and (cursor.partition_index < 0 or (request.topics and cursor.topic_name not in names)):
        return _refuse(names)
    response = DescribeTopicPartitionsResponse()
    room = max(1, min(request.response_partition_limit, context.broker.config.max_partitions_described))
    for name in names if cursor is None else names[bisect_left(names, cursor.topic_name) :]:
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        if room == 0:
            response.next_cursor = DescribeTopicPartitionsResponse.Cursor(topic_name=name)
            break
        topic_response = TopicResponse(name=name, topic_authorized_operations=TOPIC_OPERATIONS)
        response.topics.append(topic_response)
        with error_code_in(topic_response):
            check_topic_name(name)
            left = _describe(context.broker.topics.find(name, NO_TOPIC_ID), topic_response, first, room, context)
            room -= len(topic_response.partitions)
            if left is not None:
                response.next_cursor = DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=left)
                break
    return response


def _refuse(names: list[str]) -> DescribeTopicPartitionsResponse:
    """Return a response with the error INVALID_REQUEST for each topic, because the request's cursor is invalid."""
    return DescribeTopicPartitionsResponse(
        topics=[TopicResponse(name=name, error_code=ErrorCode.INVALID_REQUEST) for name in names]
    )


def _describe(
    topic: Topic, topic_response: TopicResponse, first: int, room: int, context: RequestContext
) -> int | None:
    """Add at most `room` partitions of a topic to `topic_response`, beginning with the partition `first`.

    Return the number of the next partition to describe, or None if no partition is left.
    """
    me = context.broker.config.broker_id
    topic_response.topic_id, topic_response.is_internal = topic.id, topic.is_internal
    wanted = [(number, log) for number, log in sorted(topic.partitions.items()) if number >= first]
    topic_response.partitions = [
        PartitionResponse(
            partition_index=number,
            leader_id=me,
            leader_epoch=log.leader_epoch,
            replica_nodes=[me],
            isr_nodes=[me],
            eligible_leader_replicas=[],
            last_known_elr=[],
        )
        for number, log in wanted[:room]
    ]
    return wanted[room][0] if len(wanted) > room else None
