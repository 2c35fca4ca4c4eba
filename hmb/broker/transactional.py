"""Produce requests of transactions: their partitions become part of the transaction, or must be part of it already.

A partition takes records of a transaction only while the coordinator knows that the partition belongs to it (KIP-890).
A producer of transaction version 1 adds each partition first (AddPartitionsToTxn), and the partition *verifies* that.
With version 2 (Produce 12 and later) the partition *adds* itself, which saves the producer a round trip. Kafka asks the
coordinator over the network, once per transaction. In HMB the coordinator is in the same process, and is asked for
every batch: see `TransactionCoordinator.writing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from hmb.broker.context import RequestContext
from hmb.coordinator.producer_ids import ProducerIdAndEpoch
from hmb.coordinator.transactions.transactional_id import VERSION_2
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.produce import ProduceRequest
from hmb.protocol.topics import TopicPartition
from hmb.records import RecordBatch
from hmb.storage.batches.validation import ProducedRecords
from hmb.storage.log import Log

Parsed = ProducedRecords | KafkaError  # the records of one partition, or the error for its response
FIRST_VERSION_OF_IDS = ProduceRequest.first_version("topic_data.topic_id")
# Producers do not expect these errors from a partition, and would give up. NOT_ENOUGH_REPLICAS makes them retry.
COORDINATORS = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


def code_for_producer(error: KafkaError, *, knows_fenced: bool) -> ErrorCode:
    """Return an error as a version without PRODUCER_FENCED knows it: INVALID_PRODUCER_EPOCH."""
    if error.code is ErrorCode.PRODUCER_FENCED and not knows_fenced:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error.code


def error_for_writer(error: KafkaError, *, knows_abortable: bool) -> KafkaError:
    """Return an error as a producer knows it that writes records or offsets.

    TRANSACTION_ABORTABLE is a newer code still.
    """
    code = code_for_producer(error, knows_fenced=False)
    if code is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        code = ErrorCode.INVALID_TXN_STATE
    return KafkaError(code, error.message)


class TransactionalProduce:
    """A Produce request with a transactional id."""

    def __init__(self, request: ProduceRequest, parsed: Sequence[Sequence[Parsed]], context: RequestContext) -> None:
        """Add the request's partitions to the transaction, if its version asks for that."""
        assert request.transactional_id is not None
        self._id = request.transactional_id
        self._transactions = context.broker.transactions
        self._version = context.version
        self._failure: tuple[ErrorCode, str] | None = None
        if self._version >= ProduceRequest.FIRST_VERSION_OF_ADDING:
            self._add(_partitions(request, parsed, context))

    def _add(self, partitions: dict[TopicPartition, ProducerIdAndEpoch]) -> None:
        producers = set(partitions.values())
        try:
            if len(producers) > 1:
                raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "batches of more than one producer")
            for producer in producers:
                self._transactions.add_partitions(self._id, producer, partitions.keys(), VERSION_2)
        except KafkaError as error:
            self._failure = error.code, error.message  # a traceback would keep the request's bytes alive

    @contextmanager
    def writing(self, records: ProducedRecords, partition: TopicPartition, log: Log) -> Iterator[None]:
        """Keep the transaction open while the caller appends the records, if they are transactional.

        Raises KafkaError, with a code that the producer knows, if the transaction does not allow the append.
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
        """Check that a producer of version 2 begins at sequence number 0, even if the log does not know it."""
        is_first = not log.active_producers(batch.producer_id)
        if self._version >= ProduceRequest.FIRST_VERSION_OF_ADDING and is_first and batch.base_sequence != 0:
            why = f"producer {batch.producer_id} begins with sequence number {batch.base_sequence}"
            raise KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, why)

    def _error_for_producer(self, error: KafkaError) -> KafkaError:
        adds = self._version >= ProduceRequest.FIRST_VERSION_OF_ADDING
        if error.code in COORDINATORS or (error.code is ErrorCode.CONCURRENT_TRANSACTIONS and not adds):
            why = f"cannot see whether the partition is part of the transaction: {error.message}"
            return KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, why)
        return error_for_writer(error, knows_abortable=self._version >= ProduceRequest.FIRST_VERSION_OF_ABORTABLE)


def _partitions(
    request: ProduceRequest, parsed: Sequence[Sequence[Parsed]], context: RequestContext
) -> dict[TopicPartition, ProducerIdAndEpoch]:
    """Yield the existing partitions for which the request has a transactional batch, each with the batch's producer."""
    found = {}
    for each, parsed_of_topic in zip(request.topic_data, parsed, strict=True):
        try:
            topic = context.broker.topics.find(
                each.name if context.version < FIRST_VERSION_OF_IDS else None, each.topic_id
            )
        except KafkaError:  # the partition's own response has this error
            continue
        for data, records in zip(each.partition_data, parsed_of_topic, strict=True):
            batch = _transactional(records)
            if batch is not None and data.index in topic.partitions and not topic.is_internal:
                found[TopicPartition(topic.name, data.index)] = _producer(batch)
    return found


def _transactional(records: Parsed) -> RecordBatch | None:
    """Return the batch if it is intact and transactional, else None."""
    return records if isinstance(records, RecordBatch) and records.is_transactional else None


def _producer(batch: RecordBatch) -> ProducerIdAndEpoch:
    return ProducerIdAndEpoch(batch.producer_id, batch.producer_epoch)
