"""The methods of a transactional producer. A table in `transactions/__init__.py` lists the requests of each method."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.coordinator import CoordinatorConnection, ErrorCodes, RequestFor
from hmb.client.group.interface import GroupMetadata, Offsets
from hmb.client.metadata import Cluster
from hmb.client.producing.batch import PartitionQueue
from hmb.client.producing.idempotence import SEQUENCE_ERRORS, AtLeastOnce
from hmb.client.producing.transactions import requests
from hmb.client.producing.transactions.requests import VERSION_1, VERSION_2, TransactionVersion
from hmb.client.producing.transactions.states import TRANSITIONS, TransactionalEvent, TransactionalState
from hmb.protocol.enums import NO_PRODUCER_ID, CoordinatorType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from hmb.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from hmb.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from hmb.protocol.messages.produce import ProduceRequest
from hmb.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from hmb.protocol.schema import Request
from hmb.protocol.topics import TopicPartition
from hmb.records.producer_numbers import ProducerIdAndEpoch

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
        self,
        cluster: Cluster,
        transactional_id: str,
        timeout: float,
        retry_for: float,
        retry_backoff: float,
        *,
        newest_version: TransactionVersion = VERSION_2,
    ) -> None:
        """Create a manager for transaction version `newest_version`.

        If the cluster does not support this version, the manager uses version 1. All times are in seconds.
        """
        self.transactional_id: str = transactional_id
        self._cluster, self._timeout, self._retry_for = cluster, timeout, retry_for
        self._retry_backoff, self._newest_version = retry_backoff, newest_version
        self._coordinator = CoordinatorConnection(cluster, CoordinatorType.TRANSACTION, transactional_id)
        # Only one thread at a time sends a request to the coordinator. The thread holds `_asking` until the response
        # arrives. A thread that needs both `_asking` and `_lock` takes `_asking` first.
        self._asking = threading.Lock()
        self._lock = threading.Lock()  # guards the fields below; a thread that holds it does not wait for anything
        self._state = TransactionalState.UNINITIALIZED
        self._error: Exception | None = None  # the error that made the transaction or the producer fail
        self._version: TransactionVersion = VERSION_1
        self._producer: ProducerIdAndEpoch | None = None
        # The partitions that the producer has added to the transaction with AddPartitionsToTxn. With transaction
        # version 2, the set stays empty, because the broker adds the partitions itself.
        self._partitions: set[TopicPartition] = set()
        self._is_begun = False  # whether the coordinator may have an open transaction of this producer
        self._needs_new_epoch = False
        self._group_coordinator: CoordinatorConnection | None = None  # None, except during `send_offsets`
        self._is_closed = False

    def producer_id_and_epoch(self, connection: Connection) -> ProducerIdAndEpoch | None:
        return self._producer

    def produce_version(self, connection: Connection) -> int:
        """Return the version of the Produce requests on this connection.

        Raises KafkaError with UNSUPPORTED_VERSION if the broker does not support the producer's transaction version.
        """
        version = connection.version_of(ProduceRequest, self._version.produce[-1])
        self._version.check(ProduceRequest, version, self._version.produce)
        return version

    def new_epoch(self, queue: PartitionQueue) -> None:
        """Store that the producer needs a new epoch after the abort of the transaction."""
        self._needs_new_epoch = True

    def failed(self, error: Exception) -> None:
        """Store the error of a failed batch. The application can then only abort the transaction."""
        with self._lock:
            if isinstance(error, KafkaError) and error.code in SEQUENCE_ERRORS:
                self._needs_new_epoch = True
            self._fail(error, TransactionalEvent.BATCH_FAILED)

    def add_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Ask the coordinator to add those partitions that are not in the transaction yet.

        With transaction version 2, the method sends no request. The leader of a partition adds the partition to the
        transaction when it receives the first Produce request.
        """
        if self._version is VERSION_2:
            with self._lock:
                self._is_begun = self._is_begun or any(partitions)
            return
        with self._holding_coordinator():
            new = sorted(set(partitions) - self._partitions)
            if not new:
                return
            self._is_begun = True
            request = requests.add_partitions(self.transactional_id, self._known_producer(), new)
            newest = requests.NEWEST_ADD_PARTITIONS
            self._ask(AddPartitionsToTxnRequest, newest, lambda version: request, requests.error_codes_of_partitions)
            self._partitions.update(new)

    def initialize(self) -> None:
        """Get a producer id and an epoch from the coordinator, and choose the transaction version.

        An older producer with the same transactional id may have left a transaction open. The coordinator aborts this
        transaction. From then on, brokers reject requests of the older producer.
        """
        self._check("init_transactions", TransactionalEvent.INITIALIZED)
        with self._asking_coordinator():
            self._init_producer_id()
            level = self._coordinator.feature(requests.FEATURE)
            self._version = self._newest_version if level >= VERSION_2.number else VERSION_1
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
        """Wait until all records are delivered, and then commit the transaction.

        `flush` is a function that returns when each record has either been delivered or failed. If the commit fails
        because the coordinator cannot be reached, the application can call this method again.
        """
        self._check("commit_transaction", TransactionalEvent.COMMIT)
        is_first_try = self._state is TransactionalState.IN_TRANSACTION
        self._move(TransactionalEvent.COMMIT)
        try:
            flush()
        except BaseException:  # includes Ctrl-C (KeyboardInterrupt)
            with self._lock:
                # The first try has not sent EndTxn yet, so the application can still abort the transaction.
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
        """Discard all records that are not sent yet, wait for the records in flight, and then abort the transaction.

        `flush` is a function that returns when each record has either been delivered or failed. If the abort fails
        because the coordinator cannot be reached, the application can call this method again.
        """
        self._check("abort_transaction", TransactionalEvent.ABORT)
        self._move(TransactionalEvent.ABORT)
        self.abort_reason = KafkaError(ErrorCode.TRANSACTION_ABORTABLE, "not sent, because its transaction was aborted")
        flush()
        with self._asking_coordinator():
            if self._needs_new_epoch and self._version is VERSION_1:
                self._init_producer_id()
            elif self._is_begun:
                self._end(committed=False)
        self._finish()

    def send_offsets(self, offsets: Offsets, group: GroupMetadata | str) -> None:
        """Add the offsets of a consumer group to the transaction, so that its commit also commits these offsets.

        `group` is the metadata of the consumer's group. For a group without members, the group id is enough. If
        `offsets` is empty, the method sends no request.
        """
        if self._state is not TransactionalState.IN_TRANSACTION:
            self._raise("send_offsets_to_transaction")
        if not offsets:
            return
        group = GroupMetadata(group) if isinstance(group, str) else group
        try:
            with self._asking_coordinator():
                self._is_begun = True
                self._send_offsets(offsets, group)
        except (KafkaError, ConnectionFailed) as error:
            with self._lock:
                self._fail(error, TransactionalEvent.BATCH_FAILED)
            raise

    def close(self) -> None:
        """Close the connection to the coordinator. Any thread may call this method.

        If another thread waits for a response of a coordinator, that thread stops waiting.
        """
        self._is_closed = True
        self._coordinator.interrupt()
        group_coordinator = self._group_coordinator
        if group_coordinator is not None:
            group_coordinator.interrupt()
        self._close_connection()

    def _close_connection(self) -> None:
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
            if before is not None and version >= requests.FIRST_INIT_WITH_EPOCH:
                request.producer_id, request.producer_epoch = before
            return request

        newest = requests.NEWEST_INIT
        response: InitProducerIdResponse = self._ask(InitProducerIdRequest, newest, request, requests.error_codes)
        self._producer = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)

    def _send_offsets(self, offsets: Offsets, group: GroupMetadata) -> None:
        """Send the offsets of a consumer group to the coordinator of this group, as a part of the transaction.

        With transaction version 1, the producer must first add the group to the transaction (AddOffsetsToTxn).
        """
        producer, its = self._known_producer(), self._version
        if its is VERSION_1:
            added = requests.add_offsets(self.transactional_id, producer, group.group_id)
            newest = requests.NEWEST_ADD_OFFSETS
            self._ask(AddOffsetsToTxnRequest, newest, lambda version: added, requests.error_codes)

        def commit(version: int) -> TxnOffsetCommitRequest:
            its.check(TxnOffsetCommitRequest, version, its.commit)
            return requests.offset_commit(self.transactional_id, producer, group, offsets, version)

        times = (self._retry_for, self._retry_backoff)
        coordinator = CoordinatorConnection(self._cluster, CoordinatorType.GROUP, group.group_id)
        self._group_coordinator = coordinator
        if self._is_closed:  # Another thread may have called `close` before `_group_coordinator` was set.
            coordinator.interrupt()
        try:
            coordinator.ask(TxnOffsetCommitRequest, its.commit[-1], commit, requests.error_codes_of_offsets, *times)
        finally:
            coordinator.forget()
            self._group_coordinator = None

    def _end(self, *, committed: bool) -> None:
        """Commit or abort the transaction. With transaction version 2, store the epoch of the next transaction."""
        producer, its = self._known_producer(), self._version

        def request(version: int) -> EndTxnRequest:
            its.check(EndTxnRequest, version, its.end)
            return requests.end(self.transactional_id, producer, committed=committed)

        response: EndTxnResponse = self._ask(EndTxnRequest, its.end[-1], request, requests.error_codes)
        if response.producer_id != NO_PRODUCER_ID:
            # The transaction has ended. If Ctrl-C now interrupts `commit`, the next `commit` must not send EndTxn.
            self._is_begun = False
            self._producer = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)

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
    def _holding_coordinator(self) -> Iterator[None]:
        """Hold a lock for a `with` block, so that only one thread at a time sends requests to the coordinator.

        The method `close` does not wait for this lock. If thread A calls `close` while thread B runs the block, B
        closes the connection to the coordinator after the block.
        """
        try:
            with self._asking:
                yield
        finally:
            if self._is_closed:
                self._close_connection()

    @contextmanager
    def _asking_coordinator(self) -> Iterator[None]:
        """Let only one thread at a time run a `with` block that sends requests to the coordinator.

        If the block raises a fatal error, the producer's state becomes FATAL_ERROR, and the application can only close
        the producer. If the block raises TRANSACTION_ABORTABLE, the application can only abort the transaction.
        """
        with self._holding_coordinator():
            try:
                yield
            except KafkaError as error:
                if error.code in FATAL or error.code is ErrorCode.INVALID_PRODUCER_EPOCH:
                    with self._lock:
                        self._fail(error, TransactionalEvent.FENCED)
                elif error.code is ErrorCode.TRANSACTION_ABORTABLE:
                    with self._lock:
                        self._fail(error, TransactionalEvent.BATCH_FAILED)
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
        """Store an error, and change the state of the producer. The caller must hold `_lock`.

        If the transaction has already failed or is being aborted, only a fatal error has an effect. After a fatal
        error, all further errors are ignored.
        """
        if isinstance(error, KafkaError) and error.code in FATAL:
            event = TransactionalEvent.FENCED
        if TRANSITIONS.allows(self._state, event):
            self._state = TRANSITIONS.next(self._state, event)
            self._error = error
            why = f"not sent, because its transaction failed: {error}"
            self.abort_reason = KafkaError(ErrorCode.TRANSACTION_ABORTABLE, why)
