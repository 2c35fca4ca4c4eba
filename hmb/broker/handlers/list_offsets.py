"""ListOffsets: return the offset for a timestamp, or the first or last offset of a log.

Versions: 0-11; versions 6 and later use the flexible encoding (KIP-482).
Permissions: DESCRIBE on each topic.
Behavior: for each partition, the request contains a timestamp:
    - *Times.* A time in ms (0 or more) asks for the first record with this timestamp or a later one. The
      response contains the record's timestamp and offset, or -1 for both if no such record exists.
    - *Special timestamps.* -1 asks for the end of the log. -2 asks for its start. -3 asks for the first record
      with the greatest timestamp. -4 asks for the start of the log on the local disk (in HMB the same as -2).
    - *Transactions.* With the isolation level READ_COMMITTED, the log ends at the last stable offset.
    - *Repetitions.* If a request contains a partition twice, the response contains this partition once, with
      the error INVALID_REQUEST.
Version notes: version 0 returns a list of at most `max_num_offsets` offsets, in descending order. If the
    timestamp is 0 or more, the list contains the base offset of each segment whose file was last changed at or
    before this time. For -1, it contains the base offsets of all segments, and the end of the log. For -2, it
    contains only the start of the log. A negative timestamp that the version does not define gets
    UNSUPPORTED_VERSION.
Left out: tiered storage. The timestamps -5 and -6 ask for offsets in tiered storage. HMB responds with -1 for
    the timestamp and the offset, like a Kafka broker without tiered storage.
"""

from __future__ import annotations

from collections import Counter

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.leader_epochs import check_epoch
from hmb.protocol.enums import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    IsolationLevel,
)
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.list_offsets import (
    FIRST_LIST_OFFSETS_VERSION_OF_EPOCHS,
    FIRST_VERSION_OF_TIMESTAMP,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from hmb.protocol.topics import NO_TOPIC_ID
from hmb.records import NO_TIMESTAMP
from hmb.storage.log import Log
from hmb.storage.time_index import TimestampOffset

Wanted = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
TopicResponse = ListOffsetsResponse.ListOffsetsTopicResponse
PartitionResponse = TopicResponse.ListOffsetsPartitionResponse
TIERED = (LATEST_TIERED, EARLIEST_PENDING_UPLOAD)


def handle(request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:
    response = ListOffsetsResponse()
    times = Counter((topic.name, wanted.partition_index) for topic in request.topics for wanted in topic.partitions)
    for topic in request.topics:
        topic_response = TopicResponse(name=topic.name)
        response.topics.append(topic_response)
        for wanted in topic.partitions:
            key = topic.name, wanted.partition_index
            count, times[key] = times[key], 0
            if not count:
                continue  # The partition is already in the response.
            partition_response = PartitionResponse(partition_index=wanted.partition_index)
            topic_response.partitions.append(partition_response)
            with error_code_in(partition_response):
                if count > 1:
                    why = f"the request contains {topic.name}-{wanted.partition_index} {count} times"
                    raise KafkaError(ErrorCode.INVALID_REQUEST, why)
                _check_timestamp(wanted.timestamp, context.version)
                log = context.broker.topics.log(topic.name, NO_TOPIC_ID, wanted.partition_index)
                if context.version == 0:
                    starts = _segment_starts(log, wanted.timestamp, wanted.max_num_offsets)
                    partition_response.old_style_offsets = starts
                else:
                    _fill(log, wanted, partition_response, context.version, request.isolation_level)
    response.topics = [topic for topic in response.topics if topic.partitions]
    return response


def _check_timestamp(timestamp: int, version: int) -> None:
    """Raise UNSUPPORTED_VERSION for a negative timestamp that has no special meaning in this version of the request."""
    first_version = FIRST_VERSION_OF_TIMESTAMP.get(timestamp)
    if timestamp < 0 and (first_version is None or version < first_version):
        why = f"the timestamp {timestamp} has no meaning in ListOffsets v{version}"
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, why)


def _fill(log: Log, wanted: Wanted, partition_response: PartitionResponse, version: int, isolation_level: int) -> None:
    check_epoch(wanted.current_leader_epoch, log)
    end_offset = log.last_stable_offset if isolation_level == IsolationLevel.READ_COMMITTED else log.high_watermark
    found = _find(log, wanted.timestamp, end_offset)
    if found is not None:
        partition_response.timestamp, partition_response.offset = found
        if version >= FIRST_LIST_OFFSETS_VERSION_OF_EPOCHS:
            partition_response.leader_epoch = log.epochs.at(partition_response.offset)


def _find(log: Log, timestamp: int, end_offset: int) -> TimestampOffset | None:
    if timestamp == LATEST:
        return TimestampOffset(NO_TIMESTAMP, end_offset)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return TimestampOffset(NO_TIMESTAMP, log.log_start_offset)
    if timestamp in TIERED:
        return None
    found = log.offset_for_timestamp(None if timestamp == MAX_TIMESTAMP else timestamp)
    return found if found is not None and found.offset < end_offset else None


def _segment_starts(log: Log, timestamp: int, count: int) -> list[int]:
    """Return the offsets for a response of version 0: at most `count` offsets, in descending order.

    - If `timestamp` is a time in ms, the result contains the base offset of each segment whose file was last
      changed at or before this time. (The time of the file counts, because messages of the oldest format have no
      timestamps.)
    - If `timestamp` is -1, the result contains the base offsets of all segments, and the end of the log.
    - If `timestamp` is -2, the result contains only the log start offset.
    """
    if timestamp == EARLIEST:
        return [log.log_start_offset][:count]
    starts = [
        max(segment.base_offset, log.log_start_offset)
        for segment in log.segments
        if timestamp == LATEST or segment.path.stat().st_mtime * 1000 <= timestamp
    ]
    if timestamp == LATEST:
        starts.append(log.high_watermark)
    return sorted(set(starts), reverse=True)[: max(0, count)]
