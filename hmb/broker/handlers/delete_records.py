"""DeleteRecords: delete all records below an offset (KIP-107).

Versions: 0-2; version 2 uses the flexible encoding (KIP-482).
Permissions: DELETE on each topic.
Behavior: the broker moves the log start offset of each partition. Clients cannot read records below the log
    start offset.
    - *Offset.* The log start offset moves forward to the requested offset. It never moves back. The requested
      offset -1 means the high watermark. If a request contains a partition twice, the broker uses only the last
      offset.
    - *Segments.* The broker usually deletes the segments below the log start offset later, at the next
      retention check.
    - *Disk.* The broker first writes the new log start offsets to disk, and then responds. The offsets
      therefore survive a crash and a power cut. If the write fails, but the disk is not full, the error is
      KAFKA_STORAGE_ERROR, and the log start offsets stay unchanged.
    - *Full disk.* If the disk is full, the broker deletes the segments below the new log start offsets at once,
      and tries the write again. If the second write fails, the error is KAFKA_STORAGE_ERROR. In this case, the
      log start offsets still move, but only past the deleted segments.
Version notes: none.
Left out: `timeout_ms`. In Kafka, this is the time to wait for followers, but HMB has no followers. A client
    notices no difference: after the response, nobody can read the deleted records.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.protocol.enums import NO_OFFSET
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from hmb.protocol.topics import NO_TOPIC_ID, TopicPartition
from hmb.storage.cleanup import deletion

TopicResult = DeleteRecordsResponse.DeleteRecordsTopicResult
PartitionResult = TopicResult.DeleteRecordsPartitionResult


def handle(request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
    response = DeleteRecordsResponse()
    moved: dict[TopicPartition, PartitionResult] = {}
    for name, offsets in _by_topic(request).items():
        result = TopicResult(name=name)
        response.topics.append(result)
        for partition, offset in offsets.items():
            partition_result = PartitionResult(partition_index=partition, low_watermark=NO_OFFSET)
            result.partitions.append(partition_result)
            with error_code_in(partition_result):
                partition_result.low_watermark = _new_start(name, partition, offset, context)
                moved[TopicPartition(name, partition)] = partition_result
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
        why = f"{name} is an internal topic; clients cannot delete its records"
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, why)
    return deletion.new_start(log, offset)


def _delete(partition_results: dict[TopicPartition, PartitionResult], context: RequestContext) -> None:
    try:
        context.broker.topics.delete_records({name: result.low_watermark for name, result in partition_results.items()})
    except KafkaError as error:
        for partition_result in partition_results.values():
            partition_result.error_code, partition_result.low_watermark = error.code, -1
