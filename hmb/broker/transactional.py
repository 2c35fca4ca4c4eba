"""Produce requests with a transactional id. The broker checks the transaction before it appends the records.

The broker appends records of a transaction to a partition only if the partition belongs to the transaction
(KIP-890). With transaction version 1, the producer first sends AddPartitionsToTxn to add each partition to the
transaction. Before an append, the broker asks the transaction coordinator to *verify* that the partition
belongs to the transaction.

With transaction version 2 (Produce 12 and later), the producer saves a round trip, because it sends no
AddPartitionsToTxn request. Instead, the broker asks the transaction coordinator to *add* the partitions of each
Produce request to the transaction.

In Kafka, the transaction coordinator can be another broker, so each question to it takes a network round trip.
A Kafka broker therefore asks only once whether a partition belongs to a transaction. HMB's coordinator runs in
the broker's process, so HMB asks before each append (`TransactionCoordinator.writing`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from hmb.broker.context import RequestContext
from hmb.broker.errors import COORDINATOR_ERRORS
from hmb.coordinator.transactions.transactional_id import VERSION_2
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.headers import RequestHeader
from hmb.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from hmb.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from hmb.protocol.messages.end_txn import EndTxnRequest
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest
from hmb.protocol.messages.produce import ProduceRequest
from hmb.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from hmb.protocol.topics import TopicPartition
from hmb.records import RecordBatch
from hmb.records.producer_numbers import ProducerIdAndEpoch
from hmb.storage.batches.validation import ProducedRecords
from hmb.storage.log import Log

PartitionData = ProduceRequest.TopicProduceData.PartitionProduceData
NEVER = 2**15  # no request has this version
# Old clients do not know the error PRODUCER_FENCED. For each API, this dict contains the first version in which clients
# know it. If a request has an older version, the broker returns INVALID_PRODUCER_EPOCH instead. For APIs that are not
# in the dict, such as Produce, the broker returns INVALID_PRODUCER_EPOCH in all versions.
FIRST_VERSION_OF_FENCED: Mapping[int, int] = {
    ApiKey.INIT_PRODUCER_ID: InitProducerIdRequest.FIRST_VERSION_OF_FENCED,
    ApiKey.ADD_PARTITIONS_TO_TXN: AddPartitionsToTxnRequest.FIRST_VERSION_OF_FENCED,
    ApiKey.ADD_OFFSETS_TO_TXN: AddOffsetsToTxnRequest.FIRST_VERSION_OF_FENCED,
    ApiKey.END_TXN: EndTxnRequest.FIRST_VERSION_OF_FENCED,
}
# For each API: the first version in which clients know the error TRANSACTION_ABORTABLE. If a request has an older
# version, the broker returns INVALID_TXN_STATE instead.
FIRST_VERSION_OF_ABORTABLE: Mapping[int, int] = {
    ApiKey.PRODUCE: ProduceRequest.FIRST_VERSION_OF_ABORTABLE,
    ApiKey.TXN_OFFSET_COMMIT: TxnOffsetCommitRequest.FIRST_VERSION_OF_ABORTABLE,
}


class StoredError(NamedTuple):
    """The code and the message of an error that the broker raises later.

    The broker does not store the exception itself. The traceback of an exception refers to the request, so the
    bytes of the request would stay in memory.
    """

    code: ErrorCode
    message: str


Parsed = ProducedRecords | StoredError  # the records of one partition, or the error that the response contains for it


def code_for_producer(code: ErrorCode, header: RequestHeader) -> ErrorCode:
    """Return `code`. If the version of the request is too old for `code`, return a similar code instead."""
    api_key, version = header.api_key, header.api_version
    if code is ErrorCode.PRODUCER_FENCED and version < FIRST_VERSION_OF_FENCED.get(api_key, NEVER):
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < FIRST_VERSION_OF_ABORTABLE.get(api_key, 0):
        return ErrorCode.INVALID_TXN_STATE
    return code


class TransactionalProduce:
    """The checks of one Produce request that has a transactional id."""

    def __init__(
        self,
        request: ProduceRequest,
        context: RequestContext,
        parse: Callable[[PartitionData], ProducedRecords],
        *,
        uses_ids: bool,
    ) -> None:
        """Parse the records of all partitions in the request.

        If the request has version 12 or higher, also add the partitions to the transaction.

        `parse` returns the records of one partition, or raises KafkaError. `uses_ids` is True if the request contains
        topic ids instead of names. The constructor stores all errors, and the methods `records_of` and `writing` raise
        them later.
        """
        assert request.transactional_id is not None
        self._id = request.transactional_id
        self._transactions = context.broker.transactions
        self._version = context.version
        self._header = context.header
        self._failure: StoredError | None = None
        # For each partition in the request, this dict contains the partition's records, or the error that `parse`
        # raised. The key is Python's id() of the partition's data.
        self._parsed = {
            id(data): _outcome(parse, data) for topic in request.topic_data for data in topic.partition_data
        }
        if self._version >= ProduceRequest.FIRST_VERSION_OF_ADDING:
            self._add(_partitions(request, self._parsed, context, uses_ids=uses_ids))

    def _add(self, partitions: dict[TopicPartition, ProducerIdAndEpoch]) -> None:
        producers = set(partitions.values())
        try:
            if len(producers) > 1:
                raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "the batches have more than one producer")
            for producer in producers:
                self._transactions.add_partitions(self._id, producer, partitions.keys(), VERSION_2)
        except KafkaError as error:
            self._failure = StoredError(error.code, error.message)

    def records_of(self, data: PartitionData) -> ProducedRecords:
        """Return the records of one partition of the request. Raises KafkaError if parsing the records has failed."""
        parsed = self._parsed[id(data)]
        if isinstance(parsed, StoredError):
            raise KafkaError(*parsed)
        return parsed

    @contextmanager
    def writing(self, records: ProducedRecords, partition: TopicPartition, log: Log) -> Iterator[None]:
        """Check that the append is allowed. In the `with` block, the caller appends the records.

        During the `with` block, no thread can commit or abort the transaction. Records that do not belong to a
        transaction need no check.

        Raises KafkaError if the append is not allowed. If an error code is too new for the version of the client's
        Produce request, the method raises an older error code instead.
        """
        batch = _transactional(records)
        if batch is None:
            yield
            return
        with ExitStack() as stack:
            try:
                if self._failure is not None:
                    raise KafkaError(*self._failure)
                stack.enter_context(self._transactions.writing(self._id, _producer(batch), partition))
                self._check_beginning(batch, log)
            except KafkaError as error:
                raise self._error_for_producer(error) from error
            yield

    def _check_beginning(self, batch: RecordBatch, log: Log) -> None:
        """Raise OUT_OF_ORDER_SEQUENCE_NUMBER if a producer's first batch in a log does not have the sequence number 0.

        This check applies only to producers of transaction version 2.
        """
        is_first = not log.producers.active(batch.producer_id)
        if self._version >= ProduceRequest.FIRST_VERSION_OF_ADDING and is_first and batch.base_sequence != 0:
            why = f"producer {batch.producer_id} begins with sequence number {batch.base_sequence}, not 0"
            raise KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, why)

    def _error_for_producer(self, error: KafkaError) -> KafkaError:
        """Return the error that the Produce response contains instead of `error`.

        A producer expects some errors, for example NOT_COORDINATOR, only from a coordinator. If a Produce response
        contained one of them, an old producer would perhaps give up. The method therefore returns NOT_ENOUGH_REPLICAS
        instead. All producers try again after this error.

        An old client does not know every error code. For example, clients know TRANSACTION_ABORTABLE only since
        Produce 11. In older versions, the method returns an error with the older code INVALID_TXN_STATE.
        """
        adds = self._version >= ProduceRequest.FIRST_VERSION_OF_ADDING
        if error.code in COORDINATOR_ERRORS or (error.code is ErrorCode.CONCURRENT_TRANSACTIONS and not adds):
            why = f"cannot see whether the partition is part of the transaction: {error.message}"
            return KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, why)
        return KafkaError(code_for_producer(error.code, self._header), error.message)


def _partitions(
    request: ProduceRequest, parsed: Mapping[int, Parsed], context: RequestContext, *, uses_ids: bool
) -> dict[TopicPartition, ProducerIdAndEpoch]:
    """Return the producer of each transactional batch in the request, as a dict: partition -> producer.

    Leave out partitions of internal topics, and partitions that do not exist.
    """
    found = {}
    for each in request.topic_data:
        try:
            topic = context.broker.topics.find(None if uses_ids else each.name, each.topic_id)
        except KafkaError:  # The handler finds the same error later, and puts it into the response.
            continue
        for data in each.partition_data:
            batch = _transactional(parsed[id(data)])
            if batch is not None and data.index in topic.partitions and not topic.is_internal:
                found[TopicPartition(topic.name, data.index)] = _producer(batch)
    return found


def _outcome(parse: Callable[[PartitionData], ProducedRecords], data: PartitionData) -> Parsed:
    try:
        return parse(data)
    except KafkaError as error:
        return StoredError(error.code, error.message)


def _transactional(records: Parsed) -> RecordBatch | None:
    """Return `records` if it is a transactional batch. Otherwise, for example if parsing has failed, return None."""
    return records if isinstance(records, RecordBatch) and records.is_transactional else None


def _producer(batch: RecordBatch) -> ProducerIdAndEpoch:
    return ProducerIdAndEpoch(batch.producer_id, batch.producer_epoch)
