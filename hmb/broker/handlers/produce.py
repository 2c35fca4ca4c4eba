"""Produce: append record batches to partitions.

Versions: 0-13; versions 9 and later use the flexible encoding (KIP-482).
Permissions: WRITE on the transactional id, if the request has one; WRITE on each topic.
Behavior: each partition has its own error code. `acks` determines when the broker responds:
    - *acks=1.* The broker responds after the append.
    - *acks=-1 (all).* If `log.flush.acks.all` is true, the broker responds after the records are on disk. Otherwise
      it responds after the append. HMB has no followers, so it does not wait for them.
    - *acks=0.* The broker does not respond. If an error occurs, it closes the connection, so that the client
      notices the error.
    - *Invalid records (any acks).* If one record of a batch is invalid, the broker refuses the whole batch. For
      example, a timestamp can be out of range, or a record for a compacted topic can have no key. `record_errors`
      contains at most the first ten invalid records. (In Kafka, it contains all of them.)
Version notes: the version determines the format of the records (`ProduceRequest.magic_of`).
    - *Record batches.* If a request below version 3 contains a record batch, the error is INVALID_RECORD. (A Kafka
      broker accepts the request, but no client sends one. HMB refuses it, because some of HMB's checks exist only for
      later versions.)
    - *zstd.* If a request below version 7 contains a batch that is compressed with zstd, the error is
      UNSUPPORTED_COMPRESSION_TYPE.
    - *Transactions.* A transactional batch must belong to an open transaction (broker/transactional.py). If no such
      transaction is open, the error is INVALID_TXN_STATE in versions below 11, and TRANSACTION_ABORTABLE in later
      versions. From version 12 on, the broker itself adds a partition to the transaction, when the first batch of
      the transaction for this partition arrives.
Left out: `timeout_ms`, the time to wait for followers. HMB has no followers, so this makes no difference to a
    client.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from hmb.broker.context import RequestContext
from hmb.broker.deferred import Deferred
from hmb.broker.errors import CloseConnection, error_code_in, put_error
from hmb.broker.transactional import TransactionalProduce
from hmb.protocol.enums import NO_OFFSET, Acks
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.produce import FIRST_PRODUCE_VERSION_OF_IDS, ProduceRequest, ProduceResponse
from hmb.protocol.topics import TopicPartition
from hmb.records import RecordBatch
from hmb.storage.batches.validation import InvalidRecords, ProducedRecords, parse_produced
from hmb.storage.log import Log

TopicResponse = ProduceResponse.TopicProduceResponse
PartitionResponse = TopicResponse.PartitionProduceResponse
TopicData = ProduceRequest.TopicProduceData
PartitionData = TopicData.PartitionProduceData
ADMIN_CLIENT = "__admin_client"  # the only client id that may write to internal topics
# If a partition has one of these errors, its response does not contain the log start offset.
WITHOUT_LOG_START = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.KAFKA_STORAGE_ERROR)


def handle(request: ProduceRequest, context: RequestContext) -> ProduceResponse | Deferred[ProduceResponse] | None:
    response = ProduceResponse()
    appended: list[tuple[Log, PartitionResponse]] = []
    appends = _Appends(request, context)
    for topic in request.topic_data:
        topic_response = TopicResponse(name=topic.name, topic_id=topic.topic_id)
        response.responses.append(topic_response)
        for partition in topic.partition_data:
            partition_response = PartitionResponse(index=partition.index, base_offset=NO_OFFSET)
            topic_response.partition_responses.append(partition_response)
            try:
                log = appends.append(topic, partition, partition_response)
                appended.append((log, partition_response))
            except (KafkaError, OSError) as error:
                put_error(partition_response, error)
    if request.acks == Acks.NONE:
        _close_on_error(response)
        return None
    if request.acks == Acks.ALL and context.broker.config.flush_acks_all:
        return Deferred(partial(_synced, response, appended))
    return response


def _synced(response: ProduceResponse, unsynced: Iterable[tuple[Log, PartitionResponse]]) -> ProduceResponse:
    for log, partition_response in unsynced:
        with error_code_in(partition_response):
            log.flush()
    return response


class _Appends:
    """Appends the records of one Produce request to the logs of their partitions."""

    def __init__(self, request: ProduceRequest, context: RequestContext) -> None:
        self._request = request
        self._context = context
        self._uses_ids = context.version >= FIRST_PRODUCE_VERSION_OF_IDS
        self._transaction: TransactionalProduce | None = None
        if request.transactional_id is not None:
            self._transaction = TransactionalProduce(request, context, self._parse, uses_ids=self._uses_ids)

    def append(self, topic: TopicData, partition: PartitionData, partition_response: PartitionResponse) -> Log:
        """Append the records of one partition to its log, and return the log. Raises KafkaError.

        Write the offset of the first record into `partition_response`.
        """
        context, transaction = self._context, self._transaction
        target = context.broker.topics.find(None if self._uses_ids else topic.name, topic.topic_id)
        log = target.log(partition.index)
        records = self._parse(partition) if transaction is None else transaction.records_of(partition)
        if target.is_internal and context.header.client_id != ADMIN_CLIENT:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"only the broker writes to {target.name!r}")
        if transaction is None:
            _append_to_log(log, records, partition_response)
        else:
            with transaction.writing(records, TopicPartition(target.name, partition.index), log):
                _append_to_log(log, records, partition_response)
        return log

    def _parse(self, partition: PartitionData) -> ProducedRecords:
        request = self._request
        if request.acks not in (Acks.NONE, Acks.LEADER, Acks.ALL):
            raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={request.acks}: the value must be 0, 1 or -1")
        is_transactional = request.transactional_id is not None
        records = parse_produced(partition.records, self._context.version, is_transactional=is_transactional)
        if isinstance(records, RecordBatch):
            client = self._context.client
            client.last_attributes, client.last_producer_id = records.attributes, records.producer_id
        return records


def _append_to_log(log: Log, records: ProducedRecords, partition_response: PartitionResponse) -> None:
    """Append records to a log, and write the offset of the first record into the partition's response.

    Raises KafkaError.
    """
    try:
        result = log.append(records)
    except KafkaError as error:
        if error.code not in WITHOUT_LOG_START:
            partition_response.log_start_offset = log.log_start_offset
        if isinstance(error, InvalidRecords):
            partition_response.record_errors = [
                PartitionResponse.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=why)
                for index, why in error.errors.items()
            ]
        raise
    partition_response.base_offset = result.base_offset
    partition_response.log_append_time_ms = result.log_append_time
    partition_response.log_start_offset = result.log_start_offset


def _close_on_error(response: ProduceResponse) -> None:
    for topic in response.responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                error = ErrorCode(partition.error_code).name
                why = f": {partition.error_message}" if partition.error_message else ""
                raise CloseConnection(f"produce with acks=0 to {topic.name}-{partition.index}: {error}{why}")
