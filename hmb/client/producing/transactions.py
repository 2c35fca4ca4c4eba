"""Transactions: records of several partitions, and a consumer's offsets, become visible together or not at all.

A producer with a *transactional id* sends requests about its transactions to one broker, the transaction coordinator.
The coordinator stores the state of the transactional id. The state is not lost when the producer or the broker
restarts. Each method of the producer sends these requests:
    init_transactions            InitProducerId; the response contains a producer id and an epoch, and brokers then
                                 reject older producers with the same transactional id
    begin_transaction            no request
    send                         AddPartitionsToTxn before the first batch of each partition, then Produce
    send_offsets_to_transaction  AddOffsetsToTxn, then TxnOffsetCommit to the coordinator of the consumer's group
    commit_transaction           EndTxn, after all batches are delivered; the coordinator then writes a marker into
                                 each partition of the transaction
    abort_transaction            EndTxn, after the producer has discarded its waiting batches and received the
                                 responses for the batches in flight

If a record cannot be delivered, the application must abort the transaction. After the abort, the application can begin
another transaction. To abort a transaction, the producer usually sends EndTxn. EndTxn is not enough if a copy of a
batch may still be on its way to a broker. The producer then requests a greater epoch instead of sending EndTxn. The
coordinator then aborts the transaction itself, and brokers reject the copy (KIP-360).

After a *fatal* error, the application can only close the producer. For example, the error is fatal if a newer producer
uses the same transactional id.

Limits: HMB's client supports version 1 of transactions, but not version 2 (KIP-890). In version 2, the broker itself
adds partitions to a transaction, and each transaction has its own epoch. Brokers with version 2 also accept clients
with version 1. With version 1, the first record for each partition of a transaction costs one more request
(AddPartitionsToTxn). A late request of an old transaction can also reach the next transaction of the same producer,
because both have one epoch.

Source: KIP-98, KIP-360, KIP-447.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.coordinator import CoordinatorConnection, ErrorCodes, RequestFor
from hmb.client.group.interface import GroupMetadata, OffsetAndMetadata, Offsets
from hmb.client.metadata import Cluster
from hmb.client.producing.batch import PartitionQueue
from hmb.client.producing.idempotence import SEQUENCE_ERRORS, AtLeastOnce
from hmb.client.producing.transaction_states import TRANSITIONS, TransactionalEvent, TransactionalState
from hmb.protocol.enums import CoordinatorType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from hmb.protocol.messages.add_partitions_to_txn import (
    FIRST_VERSION_OF_BROKERS,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from hmb.protocol.messages.end_txn import FIRST_VERSION_OF_EPOCHS, EndTxnRequest, EndTxnResponse
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from hmb.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from hmb.protocol.schema import Request
from hmb.protocol.topics import TopicPartition
from hmb.records.producer_numbers import ProducerIdAndEpoch

# HMB's client uses version 1 of transactions. Each constant NEWEST_... is the newest version of a request that such a
# client may send. Newer versions of AddPartitionsToTxn, TxnOffsetCommit and EndTxn belong to version 2 of transactions
# (KIP-890).
NEWEST_ADD_PARTITIONS = FIRST_VERSION_OF_BROKERS - 1
NEWEST_ADD_OFFSETS, NEWEST_INIT = AddOffsetsToTxnRequest.versions[-1], InitProducerIdRequest.versions[-1]
NEWEST_COMMIT = TxnOffsetCommitRequest.FIRST_VERSION_OF_ADDING - 1
NEWEST_END = FIRST_VERSION_OF_EPOCHS - 1
FIRST_INIT_WITH_EPOCH = InitProducerIdRequest.first_version("producer_epoch")
FIRST_COMMIT_WITH_MEMBER = TxnOffsetCommitRequest.first_version("member_id")

FATAL = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
}



class TransactionManager(AtLeastOnce):
    """Manages the transactions of a producer. Application threads and sender threads use the same instance."""

    def __init__(
        self, cluster: Cluster, transactional_id: str, timeout: float, retry_for: float, retry_backoff: float
    ) -> None:
        self.transactional_id: str = transactional_id
        self._cluster, self._timeout, self._retry_for = cluster, timeout, retry_for
        self._retry_backoff = retry_backoff
        self._coordinator = CoordinatorConnection(cluster, CoordinatorType.TRANSACTION, transactional_id)
        # A thread holds this lock during a request to the coordinator. A thread that needs `_asking` and `_lock` takes
        # `_asking` first.
        self._asking = threading.Lock()
        self._lock = threading.Lock()  # guards the fields below; a thread that holds it does not wait for anything
        self._state = TransactionalState.UNINITIALIZED
        self._error: Exception | None = None  # the error that made the transaction or the producer fail
        self._producer: ProducerIdAndEpoch | None = None
        self._partitions: set[TopicPartition] = set()  # the partitions that were added to the transaction
        self._is_begun = False  # whether the coordinator may have an open transaction of this producer
        self._needs_new_epoch = False

    def producer_id_and_epoch(self, connection: Connection) -> ProducerIdAndEpoch | None:
        return self._producer

    def new_epoch(self, queue: PartitionQueue) -> None:
        """Record that an abort of the transaction must also raise the producer epoch at the coordinator."""
        self._needs_new_epoch = True

    def failed(self, error: Exception) -> None:
        """Record that a batch has failed. The application can then only abort the transaction."""
        with self._lock:
            if isinstance(error, KafkaError) and error.code in SEQUENCE_ERRORS:
                self._needs_new_epoch = True
            self._fail(error, TransactionalEvent.BATCH_FAILED)

    def add_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Send a request to the coordinator, to add the partitions that are not in the transaction yet."""
        with self._asking:
            new = sorted(set(partitions) - self._partitions)
            if not new:
                return
            topics: dict[str, list[int]] = {}
            for topic, partition in new:
                topics.setdefault(topic, []).append(partition)
            self._is_begun = True
            producer = self._known_producer()
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=producer.producer_id,
                v3_and_below_producer_epoch=producer.epoch,
                v3_and_below_topics=[
                    AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction.AddPartitionsToTxnTopic(
                        name=name, partitions=numbers
                    )
                    for name, numbers in topics.items()
                ],
            )
            newest = NEWEST_ADD_PARTITIONS
            self._ask(AddPartitionsToTxnRequest, newest, lambda version: request, _error_codes_of_partitions)
            self._partitions.update(new)

    def initialize(self) -> None:
        """Get a producer id and an epoch from the coordinator.

        An older producer with the same transactional id may have left a transaction open. The coordinator aborts this
        transaction. From then on, brokers reject requests of the older producer.
        """
        self._check("init_transactions", TransactionalEvent.INITIALIZED)
        with self._asking_coordinator():
            self._init_producer_id()
        self._move(TransactionalEvent.INITIALIZED)

    def begin(self) -> None:
        """Begin a transaction. All records that are sent after this call belong to the transaction."""
        self._check("begin_transaction", TransactionalEvent.BEGIN)
        self._move(TransactionalEvent.BEGIN)

    @property
    def can_abort(self) -> bool:
        """Whether the producer has an open transaction that it can abort."""
        return TRANSITIONS.allows(self._state, TransactionalEvent.ABORT)

    def check_sending(self) -> None:
        """Raise KafkaError if no record may be sent now. Records may be sent only in an open transaction."""
        if self._state is not TransactionalState.IN_TRANSACTION:
            self._raise("send")

    def commit(self, flush: Callable[[], None]) -> None:
        """Wait until all records are delivered, and commit the transaction.

        `flush` is a function that waits until all records are delivered or have failed. If the coordinator cannot be
        reached, the application may call this method again.
        """
        self._check("commit_transaction", TransactionalEvent.COMMIT)
        is_first_try = self._state is TransactionalState.IN_TRANSACTION
        self._move(TransactionalEvent.COMMIT)
        try:
            flush()
        except BaseException:  # includes Ctrl-C (KeyboardInterrupt)
            with self._lock:
                # No request has reached the coordinator yet, so the application can still abort the transaction.
                if is_first_try and self._state is TransactionalState.COMMITTING:
                    self._state = TRANSITIONS.next(self._state, TransactionalEvent.COMMIT_INTERRUPTED)
            raise
        # If a record has failed during `flush`, this check raises an error, because the transaction cannot be
        # committed.
        self._check("commit_transaction", TransactionalEvent.FINISHED)
        with self._asking_coordinator():
            if self._is_begun:
                self._end(committed=True)
        self._finish()

    def abort(self, flush: Callable[[], None]) -> None:
        """Discard all records that are not sent yet, wait for the records in flight, and abort the transaction.

        `flush` is a function that waits until all records are delivered or have failed. If the coordinator cannot be
        reached, the application may call this method again.
        """
        self._check("abort_transaction", TransactionalEvent.ABORT)
        self._move(TransactionalEvent.ABORT)
        self.abort_reason = KafkaError(ErrorCode.TRANSACTION_ABORTABLE, "not sent, because its transaction was aborted")
        flush()
        with self._asking_coordinator():
            if self._needs_new_epoch:
                self._init_producer_id()
            elif self._is_begun:
                self._end(committed=False)
        self._finish()

    def send_offsets(self, offsets: Offsets, group: GroupMetadata | str) -> None:
        """Add offsets of a consumer group to the transaction. The commit of the transaction also commits these offsets.

        If the group has no members, `group` may be the group id.
        """
        if self._state is not TransactionalState.IN_TRANSACTION:
            self._raise("send_offsets_to_transaction")
        group = GroupMetadata(group) if isinstance(group, str) else group
        producer = self._known_producer()
        coordinator = CoordinatorConnection(self._cluster, CoordinatorType.GROUP, group.group_id)
        try:
            with self._asking_coordinator():
                self._is_begun = True
                added = AddOffsetsToTxnRequest(
                    transactional_id=self.transactional_id,
                    producer_id=producer.producer_id,
                    producer_epoch=producer.epoch,
                    group_id=group.group_id,
                )
                self._ask(AddOffsetsToTxnRequest, NEWEST_ADD_OFFSETS, lambda version: added, _error_codes)
                commit = partial(_offset_commit, self.transactional_id, producer, group, offsets)
                times = (self._retry_for, self._retry_backoff)
                coordinator.ask(TxnOffsetCommitRequest, NEWEST_COMMIT, commit, _error_codes_of_offsets, *times)
        except (KafkaError, ConnectionFailed) as error:
            with self._lock:
                self._fail(error, TransactionalEvent.BATCH_FAILED)
            raise
        finally:
            coordinator.forget()

    def close(self) -> None:
        """Close the connection to the coordinator. Any thread may call this method.

        If another thread waits for a response of the coordinator, that thread stops waiting.
        """
        self._coordinator.interrupt()
        if self._asking.acquire(blocking=False):  # If another thread holds the lock, that thread closes the connection.
            try:
                self._coordinator.forget()
            finally:
                self._asking.release()

    def _init_producer_id(self) -> None:
        """Request a producer id from the coordinator, or a greater epoch if the producer already has an id."""
        before = self._producer

        def request(version: int) -> InitProducerIdRequest:
            request = InitProducerIdRequest(
                transactional_id=self.transactional_id, transaction_timeout_ms=int(self._timeout * 1000)
            )
            if before is not None and version >= FIRST_INIT_WITH_EPOCH:
                request.producer_id, request.producer_epoch = before
            return request

        response: InitProducerIdResponse = self._ask(InitProducerIdRequest, NEWEST_INIT, request, _error_codes)
        self._producer = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)

    def _end(self, *, committed: bool) -> None:
        producer = self._known_producer()
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            committed=committed,
        )
        self._ask(EndTxnRequest, NEWEST_END, lambda version: request, _error_codes)

    def _ask(self, kind: type[Request], newest: int, request: RequestFor, error_codes: ErrorCodes) -> Any:
        """Send a request to the transaction coordinator, with retries, and return its response."""
        return self._coordinator.ask(kind, newest, request, error_codes, self._retry_for, self._retry_backoff)

    def _known_producer(self) -> ProducerIdAndEpoch:
        assert self._producer is not None, "no transaction begins before init_transactions"
        return self._producer

    def _finish(self) -> None:
        with self._lock:
            self._partitions.clear()
            self._is_begun = self._needs_new_epoch = False
            self.abort_reason = self._error = None
        self._move(TransactionalEvent.FINISHED)

    @contextmanager
    def _asking_coordinator(self) -> Iterator[None]:
        """Hold a lock for a `with` block, so that only one thread at a time sends requests to the coordinator.

        If the block raises a fatal error, change the state to FATAL_ERROR. The producer can then only be closed.
        """
        with self._asking:
            try:
                yield
            except KafkaError as error:
                if error.code in FATAL or error.code is ErrorCode.INVALID_PRODUCER_EPOCH:
                    with self._lock:
                        self._fail(error, TransactionalEvent.FENCED)
                raise

    def _check(self, method: str, event: TransactionalEvent) -> None:
        """Raise KafkaError if the event is not allowed in the current state.

        `method` is the name of the method that the application has called. The error message contains this name.
        """
        with self._lock:
            is_allowed = TRANSITIONS.allows(self._state, event)
        if not is_allowed:
            self._raise(method)

    def _raise(self, method: str) -> None:
        """Raise KafkaError. Its message explains why the method cannot be called now."""
        with self._lock:
            why = "" if self._error is None else f": {self._error}"
            code = self._error.code if isinstance(self._error, KafkaError) else ErrorCode.INVALID_TXN_STATE
            raise KafkaError(code, f"{method} of {self.transactional_id!r}: {self._state.value}{why}")

    def _move(self, event: TransactionalEvent) -> None:
        with self._lock:
            self._state = TRANSITIONS.next(self._state, event)

    def _fail(self, error: Exception, event: TransactionalEvent) -> None:
        """Change the state because of an error, and store the error. The caller must hold the lock.

        If the transaction has already failed, keep its first error, unless the new error is fatal.
        """
        if isinstance(error, KafkaError) and error.code in FATAL:
            event = TransactionalEvent.FENCED
        if TRANSITIONS.allows(self._state, event):
            self._state = TRANSITIONS.next(self._state, event)
            self._error = error
            why = f"not sent, because its transaction failed: {error}"
            self.abort_reason = KafkaError(ErrorCode.TRANSACTION_ABORTABLE, why)


def _error_codes(response: AddOffsetsToTxnResponse | EndTxnResponse | InitProducerIdResponse) -> list[tuple[None, int]]:
    return [(None, response.error_code)]


def _error_codes_of_partitions(response: AddPartitionsToTxnResponse) -> list[tuple[TopicPartition, int]]:
    return [
        (TopicPartition(topic.name, result.partition_index), result.partition_error_code)
        for topic in response.results_by_topic_v3_and_below
        for result in topic.results_by_partition
    ]


def _error_codes_of_offsets(response: TxnOffsetCommitResponse) -> list[tuple[TopicPartition, int]]:
    return [
        (TopicPartition(topic.name, partition.partition_index), partition.error_code)
        for topic in response.topics
        for partition in topic.partitions
    ]


def _offset_commit(
    transactional_id: str, producer: ProducerIdAndEpoch, group: GroupMetadata, offsets: Offsets, version: int
) -> TxnOffsetCommitRequest:
    partition_of = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic.TxnOffsetCommitRequestPartition
    topics: dict[str, TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic] = {}
    for (name, partition), offset in offsets.items():
        committed = OffsetAndMetadata(offset) if isinstance(offset, int) else offset
        topic = topics.setdefault(name, TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=name))
        topic.partitions.append(
            partition_of(
                partition_index=partition,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                committed_metadata=committed.metadata,
            )
        )
    request = TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group.group_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=list(topics.values()),
    )
    if version >= FIRST_COMMIT_WITH_MEMBER:
        request.generation_id, request.member_id = group.generation_id, group.member_id
        request.group_instance_id = group.group_instance_id
    return request
