"""DeleteRecords: forget what lies before an offset (KIP-107).

Versions: 0-2, flexible from 2.
Behaviour: each partition's log start offset moves to the one asked for, -1 being the high watermark; one that lies
    behind it already changes nothing, and of a partition that is named twice the last one counts.  When the answer is
    sent the new starts are on disk, so they outlast a kill and a power cut.  Segments that lie before the start as a
    whole are deleted with the next look at retention.
Version notes: none.
Left out: waiting for followers, `timeout_ms` is their time: one broker has none.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import answering
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from hmb.protocol.topics import NO_TOPIC_ID

TopicResult = DeleteRecordsResponse.DeleteRecordsTopicResult
PartitionResult = TopicResult.DeleteRecordsPartitionResult


def handle(request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
    response = DeleteRecordsResponse()
    moved: list[PartitionResult] = []
    for name, offsets in _by_topic(request).items():
        result = TopicResult(name=name)
        response.topics.append(result)
        for partition, offset in offsets.items():
            answer = PartitionResult(partition_index=partition, low_watermark=-1)
            result.partitions.append(answer)
            with answering(answer):
                answer.low_watermark = _delete(name, partition, offset, context)
                moved.append(answer)
    if moved:
        _keep(moved, context)
    return response


def _by_topic(request: DeleteRecordsRequest) -> dict[str, dict[int, int]]:
    by_topic: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        for asked in topic.partitions:
            by_topic.setdefault(topic.name, {})[asked.partition_index] = asked.offset
    return by_topic


def _delete(name: str, partition: int, offset: int, context: RequestContext) -> int:
    topic = context.broker.topics.find(name, NO_TOPIC_ID)
    log = topic.log(partition)
    if topic.is_internal:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    return log.delete_records(offset)


def _keep(moved: list[PartitionResult], context: RequestContext) -> None:
    try:
        context.broker.topics.keep_log_starts()
    except KafkaError as error:
        for answer in moved:
            answer.error_code, answer.low_watermark = error.code, -1
