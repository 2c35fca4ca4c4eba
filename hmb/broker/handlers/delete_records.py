"""DeleteRecords: delete the records below an offset (KIP-107).

Versions: 0-2, flexible from 2.
Behavior: each partition's log start offset moves to the requested one; -1 means the high watermark. A log start offset
    never moves back. If a request names a partition twice, the second entry counts. When the response is sent, the new
    log start offsets are on disk, so they survive a kill and a power cut. If they cannot be written, the response is
    KAFKA_STORAGE_ERROR, and no log start offset has moved. The next retention check removes the segments below the new
    log start offset. On a full disk the broker removes them at once, to make room for the new offset.
Version notes: none.
Left out: `timeout_ms`, the time to wait for followers, because one broker has no followers.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import answering
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from hmb.protocol.topics import NO_TOPIC_ID, TopicPartition

TopicResult = DeleteRecordsResponse.DeleteRecordsTopicResult
PartitionResult = TopicResult.DeleteRecordsPartitionResult


def handle(request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
    response = DeleteRecordsResponse()
    moved: dict[TopicPartition, PartitionResult] = {}
    for name, offsets in _by_topic(request).items():
        result = TopicResult(name=name)
        response.topics.append(result)
        for partition, offset in offsets.items():
            answer = PartitionResult(partition_index=partition, low_watermark=-1)
            result.partitions.append(answer)
            with answering(answer):
                answer.low_watermark = _new_start(name, partition, offset, context)
                moved[TopicPartition(name, partition)] = answer
    if moved:
        _delete(moved, context)
    return response


def _by_topic(request: DeleteRecordsRequest) -> dict[str, dict[int, int]]:
    by_topic: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        for asked in topic.partitions:
            by_topic.setdefault(topic.name, {})[asked.partition_index] = asked.offset
    return by_topic


def _new_start(name: str, partition: int, offset: int, context: RequestContext) -> int:
    topic = context.broker.topics.find(name, NO_TOPIC_ID)
    log = topic.log(partition)
    if topic.is_internal:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    return log.cleanup.new_start(offset)


def _delete(answers: dict[TopicPartition, PartitionResult], context: RequestContext) -> None:
    try:
        context.broker.topics.delete_records({name: answer.low_watermark for name, answer in answers.items()})
    except KafkaError as error:
        for answer in answers.values():
            answer.error_code, answer.low_watermark = error.code, -1
