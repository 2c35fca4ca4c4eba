"""Produce: append record batches to partitions.

Versions: 0-13, flexible from 9.
Behaviour: each partition's records go to its log, which checks them and assigns their offsets; each partition has its
    own error code.  A batch is refused as a whole if one of its records is wrong: it has no key in a compacted topic,
    or its timestamp is out of range.  `record_errors` names the first ten such records; Kafka names all.  acks=1 and
    acks=-1 (all) differ only in the disk, because one broker has no followers: acks=-1 is answered after a sync
    (`log.flush.acks.all`).  acks=0 is not answered at all.  An error then closes the connection, the only sign that
    exists.
    Clients send several requests before they read a response. Requests that have arrived are appended before the first
    of them is answered (network/gathering.py): one sync makes the records of all of them durable.
Version notes: 0 and 1 carry messages of magic 0, 2 those of magic 1, 3 and later exactly one record batch a
    partition; zstd from 7 on; 13 names topics by id.  `record_errors` from 8 on.  Record batches below 3 get
    INVALID_RECORD, where a Kafka broker lets them pass: no client sends them, and they would get around what is
    checked from 3 on.
    Batches of a transaction: `broker/transactional.py`; from 11 on what takes no part in it is TRANSACTION_ABORTABLE,
    before it is INVALID_TXN_STATE; from 12 on the partition becomes part of it with its first batch.
Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from hmb.broker.context import RequestContext
from hmb.broker.deferred import Deferred
from hmb.broker.errors import CloseConnection, answer_with, answering
from hmb.broker.transactional import TransactionalProduce
from hmb.protocol.enums import Acks
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.produce import ProduceRequest, ProduceResponse
from hmb.protocol.topics import TopicPartition
from hmb.storage.batches.validation import InvalidRecords, ProducedRecords, parse_produced
from hmb.storage.log import Log

TopicResponse = ProduceResponse.TopicProduceResponse
PartitionResponse = TopicResponse.PartitionProduceResponse
PartitionData = ProduceRequest.TopicProduceData.PartitionProduceData
FIRST_VERSION_OF_IDS = ProduceRequest.first_version("topic_data.topic_id")
ADMIN_CLIENT = "__admin_client"  # the client id that may write to Kafka's internal topics to repair them
# Errors with which an answer does not name the log's start.
TELLING_NOTHING = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.KAFKA_STORAGE_ERROR)


def handle(request: ProduceRequest, context: RequestContext) -> Deferred | None:
    response = ProduceResponse()
    parsed = [
        [_parsed(partition, request, context.version) for partition in topic.partition_data]
        for topic in request.topic_data
    ]
    transaction = None if request.transactional_id is None else TransactionalProduce(request, parsed, context)
    appended: list[tuple[Log, PartitionResponse]] = []
    for topic, parsed_of_topic in zip(request.topic_data, parsed, strict=True):
        topic_response = TopicResponse(name=topic.name, topic_id=topic.topic_id)
        response.responses.append(topic_response)
        name = topic.name if context.version < FIRST_VERSION_OF_IDS else None
        for partition, records in zip(topic.partition_data, parsed_of_topic, strict=True):
            answer = PartitionResponse(index=partition.index, base_offset=-1)
            topic_response.partition_responses.append(answer)
            with answering(answer):
                target = context.broker.topics.find(name, topic.topic_id)
                log = target.log(partition.index)
                if isinstance(records, KafkaError):
                    answer_with(answer, records)
                    continue
                if target.is_internal and context.header.client_id != ADMIN_CLIENT:
                    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"only the broker writes to {target.name!r}")
                if transaction is None:
                    _append(log, records, answer)
                else:
                    with transaction.writing(records, TopicPartition(target.name, partition.index), log):
                        _append(log, records, answer)
                appended.append((log, answer))
    if request.acks == Acks.NONE:
        _close_on_error(response)
        return None
    needs_sync = request.acks == Acks.ALL and context.broker.config.flush_acks_all
    return Deferred(partial(_synced, response, appended if needs_sync else ()))


def _synced(response: ProduceResponse, unsynced: Iterable[tuple[Log, PartitionResponse]]) -> ProduceResponse:
    for log, answer in unsynced:
        with answering(answer):
            log.flush()
    return response


def _append(log: Log, records: ProducedRecords, answer: PartitionResponse) -> None:
    """Append records to a log, and write the result into the partition's answer. Raises KafkaError."""
    try:
        result = log.append(records)
    except KafkaError as error:
        if error.code not in TELLING_NOTHING:
            answer.log_start_offset = log.log_start_offset
        if isinstance(error, InvalidRecords):
            answer.record_errors = [
                PartitionResponse.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=why)
                for index, why in error.errors.items()
            ]
        raise
    answer.base_offset = result.base_offset
    answer.log_append_time_ms = result.log_append_time
    answer.log_start_offset = result.log_start_offset


def _parsed(partition: PartitionData, request: ProduceRequest, version: int) -> ProducedRecords | KafkaError:
    """Return the records of one partition, or the error for its response."""
    try:
        if request.acks not in (Acks.NONE, Acks.LEADER, Acks.ALL):
            raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={request.acks}: must be 0, 1 or -1")
        return parse_produced(partition.records, version, is_transactional=request.transactional_id is not None)
    except KafkaError as error:
        # `handle` keeps the error, and a traceback refers to the frame of `handle`. This cycle would keep the request's
        # bytes in memory until the next garbage collection.
        return error.with_traceback(None)


def _close_on_error(response: ProduceResponse) -> None:
    for topic in response.responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                raise CloseConnection(
                    f"produce with acks=0 to {topic.name}-{partition.index}: error {partition.error_code}"
                )
