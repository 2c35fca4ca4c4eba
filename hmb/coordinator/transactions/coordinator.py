"""Handles requests of transactional producers, and stores the state of each transactional id.

For each transactional id, the coordinator stores a `Transaction`: the state of the producer and of its transaction.
The module transactional_id.py computes a new state, and this module stores it in three steps:
1. The thread that handles the request takes the lock of the transactional id and computes the new state. It adds a
   record with this state to the journal's queue.
2. The thread releases the lock, and waits until the record is on disk.
3. The thread takes the lock again, and replaces the old state in memory.

Only one thread at a time can change the state of a transactional id. During the change, other requests that
change this state fail with CONCURRENT_TRANSACTIONS. In transaction version 2 (KIP-890), a request that adds partitions
first waits for up to ADD_PATIENCE (0.1 s). For example, a producer often sends Produce and TxnOffsetCommit requests
together. Both add partitions, so the later request waits for the earlier one.

A transaction ends in three steps:
1. The broker stores the decision to commit or abort. This decision is final.
2. The broker writes a marker into each partition of the transaction.
3. The broker stores the completion.

The thread that handles an EndTxn request tries to write the markers and the completion before it sends the response. So
consumers can usually see the result when the producer receives the response. If one of these writes fails, the
housekeeper thread completes the transaction later. After a crash, the broker does this at its next start.

A record of a transaction must not be appended after the marker that ends the transaction. Such a record would
open the transaction again, and this *hanging transaction* (KIP-890) could stay open until the broker's next
start (hanging.py). A thread therefore holds the lock of the transactional id while it appends records of a
transaction (`writing`). The thread that decides to commit or abort the transaction needs the same lock. After
the decision, the broker rejects further records.

For example, EndTxn commits a transaction with two partitions. The journal stores PrepareCommit, each of the two
partitions gets a COMMIT marker, and the journal stores CompleteCommit. The coordinator makes these four writes before
it sends the response.

Source: KIP-98, KIP-890; Kafka's `TransactionCoordinator`, `TransactionStateManager`, `TransactionMarkerChannelManager`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Container, Iterator, Set
from contextlib import contextmanager
from typing import Any

from hmb.coordinator.journal.records import Key
from hmb.coordinator.journal.writing import Journal
from hmb.coordinator.producer_ids import ProducerIds
from hmb.coordinator.transactions.hanging import hanging
from hmb.coordinator.transactions.markers import MarkerWriter
from hmb.coordinator.transactions.records import KEYS, TransactionLogKey, records_of, transaction_of
from hmb.coordinator.transactions.states import TransactionState
from hmb.coordinator.transactions.table import TransactionEntry, TransactionTable, check_transactional_id
from hmb.coordinator.transactions.transactional_id import VERSION_2, Transaction
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TRANSACTIONS_TOPIC, TopicPartition
from hmb.records import EndTransactionMarker
from hmb.records.producer_numbers import ProducerIdAndEpoch
from hmb.storage.failure_isolation import isolated
from hmb.units import now_ms

LOGGER = logging.getLogger(__name__)
STOP_CHECK_INTERVAL = 0.5  # seconds between two checks whether the loader must stop
ADD_PATIENCE = 0.1  # seconds; the default of Kafka's `add.partitions.to.txn.retry.backoff.max.ms`
Change = Callable[[Transaction, int], Transaction]


class TransactionCoordinator:
    """Handles the requests of transactional producers. Stores all transactional ids of the broker. Thread-safe."""

    def __init__(
        self,
        journal: Journal,
        producer_ids: ProducerIds,
        markers: MarkerWriter,
        max_timeout: Callable[[], int],
        *,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        """Create a coordinator. The function `max_timeout` returns the setting transaction.max.timeout.ms."""
        self._journal = journal
        self._producer_ids = producer_ids
        self._markers = markers
        self._max_timeout = max_timeout
        self._clock = clock
        self._table = TransactionTable(journal, producer_ids, clock)
        self.loaded = threading.Event()
        self._stopping = threading.Event()
        self._loader = threading.Thread(target=self._load, name="transaction-loader", daemon=True)

    # -- start and stop

    def start(self) -> None:
        """Start a thread that loads all transactional ids.

        Until this thread ends, requests receive the error COORDINATOR_LOAD_IN_PROGRESS.
        """
        self._loader.start()

    def stop(self, deadline: float) -> None:
        self._stopping.set()
        if self._loader.is_alive():
            self._loader.join(max(0.0, deadline - time.monotonic()))

    def _load(self) -> None:
        """Load all transactional ids. Then complete the transactions that were decided before a crash.

        If the broker crashes after it has stored the decision to commit or to abort a transaction, markers can be
        missing. The method writes all markers of the transaction. It also ends hanging transactions (hanging.py).

        The method first waits until the broker has loaded the journal of the groups. A transaction with committed
        offsets needs a marker in this journal, and the broker must load the journal before it appends a marker.
        """
        while not self._markers.groups.loaded.wait(STOP_CHECK_INTERVAL):
            if self._stopping.is_set():
                return
        self._journal.load(self._replay, self._stopping, KEYS)
        if not self._stopping.is_set():
            self.complete_prepared()
            self._end_hanging()
            self.loaded.set()

    def _replay(self, key: Key, value: Any, producer_id: int | None) -> None:
        assert isinstance(key, TransactionLogKey)
        transaction = transaction_of(key, value)
        self._table.put(transaction)
        self._producer_ids.skip_to(max(transaction.producer_id, transaction.next_producer_id))

    def make_topic(self) -> None:
        """Create the journal's topic if it does not exist. Raises KafkaError."""
        self._journal.make_topic()

    def on_topics_deleted(self, names: Container[str]) -> None:
        """Remove all transactional ids from memory if `__transaction_state` is one of the deleted topics."""
        if TRANSACTIONS_TOPIC in names:
            self._table.clear()

    # -- producers

    def init_producer(
        self, transactional_id: str, timeout: int, known: ProducerIdAndEpoch | None
    ) -> ProducerIdAndEpoch:
        """Return the producer id and the epoch that a producer of a transactional id must use.

        When a producer starts, `known` is None. The producer gets a new epoch, so requests with an older epoch fail.
        When a producer continues after an error, `known` contains its producer id and epoch.

        If a transaction is open, the method aborts it and raises CONCURRENT_TRANSACTIONS. The producer then repeats its
        request. Also raises INVALID_REQUEST, INVALID_TRANSACTION_TIMEOUT, PRODUCER_FENCED, NOT_COORDINATOR,
        COORDINATOR_LOAD_IN_PROGRESS, KAFKA_STORAGE_ERROR, UNKNOWN_SERVER_ERROR.
        """
        check_transactional_id(transactional_id)
        if not 0 < timeout <= self._max_timeout():
            why = f"{timeout} ms are not in 1 .. {self._max_timeout()} (transaction.max.timeout.ms)"
            raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT, why)
        entry = self._table.find_or_make(transactional_id)
        after = self._step(entry, lambda before, now: before.init(timeout, known, now, self._producer_ids.allocate))
        if after.state is not TransactionState.EMPTY:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "the open transaction has been aborted")
        LOGGER.info("transactional id %r belongs to producer %d, epoch %d", transactional_id, *after.producer)
        return after.producer

    def add_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Set[TopicPartition], version: int
    ) -> None:
        """Add partitions to the producer's transaction.

        Raises the errors of `TransactionTable.find` and of `Transaction.check`.
        """
        entry = self._table.find(transactional_id)
        patience = ADD_PATIENCE if version >= VERSION_2 else 0.0
        self._step(entry, lambda before, now: before.add(producer, partitions, version, now), patience)

    def verify(self, transactional_id: str, producer: ProducerIdAndEpoch) -> Set[TopicPartition]:
        """Check the id and the epoch of a producer, and return the partitions of its transaction.

        Raises the errors of `add_partitions`.
        """
        entry = self._table.find(transactional_id)
        with entry.lock:
            entry.transaction.check(producer)
            return entry.transaction.partitions

    @contextmanager
    def writing(self, transactional_id: str, producer: ProducerIdAndEpoch, partition: TopicPartition) -> Iterator[None]:
        """Hold the lock of a transactional id in a `with` block that appends records to a partition.

        While the caller holds the lock, no other thread can commit or abort the transaction of these records. Raises
        TRANSACTION_ABORTABLE if the partition is not part of the transaction. Also raises the errors of
        `TransactionTable.find` and of `Transaction.check`.
        """
        entry = self._table.find(transactional_id)
        with entry.lock:
            entry.transaction.check(producer)
            if partition not in entry.transaction.partitions:
                why = f"{partition} is not part of the transaction of {transactional_id!r}"
                raise KafkaError(ErrorCode.TRANSACTION_ABORTABLE, why)
            yield

    def end(
        self, transactional_id: str, producer: ProducerIdAndEpoch, version: int, *, committed: bool
    ) -> ProducerIdAndEpoch:
        """Commit or abort the producer's transaction. Return the producer id and epoch for its next transaction.

        Raises INVALID_TXN_STATE and the errors of `add_partitions`.
        """
        entry = self._table.find(transactional_id)
        after = self._step(
            entry, lambda before, now: before.end(producer, committed, version, now, self._producer_ids.allocate)
        )
        return after.producer if version >= VERSION_2 else producer

    def begin_marker(
        self, marker: EndTransactionMarker, producer: ProducerIdAndEpoch, partition: TopicPartition, version: int
    ) -> Callable[[], None]:
        """Append a marker to a partition (WriteTxnMarkers). Return a function that finishes the write.

        The caller must call the returned function. If `log.flush.acks.all` is true, it waits until the marker is on
        disk. `begin_marker` or the returned function raises KafkaError if the marker cannot be written.

        The method does not check whether the coordinator knows the transaction.
        """
        return self._markers.begin_one(marker, producer, partition, version)

    # -- steps

    def _step(self, entry: TransactionEntry, change: Change, patience: float = 0.0) -> Transaction:
        """Compute the new `Transaction` of a transactional id, store it, and return it.

        The function `change` computes the new `Transaction` from the old `Transaction` in `entry`. If the new
        `Transaction` contains the decision to commit or abort, the method also writes the markers, and returns the
        completed `Transaction`. If the markers cannot be written now, the housekeeper thread writes them later.

        If another thread is changing `entry`, the method waits for at most `patience` seconds. Raises the errors of
        `change` and of `_write`.
        """
        after = self._write(entry, change, patience=patience)
        if not after.is_prepared:
            return after
        try:
            return self._complete(entry)
        except KafkaError as error:  # The decision to commit or abort stays valid.
            LOGGER.error("%r: the markers are not written yet: %s", after.transactional_id, error.message)
            return after.complete(self._clock())

    def _write(
        self, entry: TransactionEntry, change: Change, *, owns_transition: bool = False, patience: float = 0.0
    ) -> Transaction:
        """Compute a new `Transaction` for `entry` with `change`. Store it in the journal, and return it.

        While a thread changes `entry`, the flag `entry.transition_in_progress` is True. If the calling thread itself
        has set the flag, it passes True for `owns_transition`. Otherwise, the method waits for at most `patience`
        seconds, and raises CONCURRENT_TRANSACTIONS if the flag is still True.

        Also raises the errors of `change`, NOT_COORDINATOR, UNKNOWN_SERVER_ERROR. After an error, `entry` keeps its old
        `Transaction`.
        """
        with entry.lock:
            if patience:
                entry.transition_ended.wait_for(lambda: not entry.transition_in_progress, patience)
            before = entry.transaction
            name = before.transactional_id
            if before.state is TransactionState.DEAD:  # The id has just expired. The next request creates a new entry.
                raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, f"the transactional id {name!r} has just expired")
            after = change(before, self._clock())
            if entry.transition_in_progress and not owns_transition:
                raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, f"the transactional id {name!r} is busy; try again")
            if after is before:
                return before
            queued = self._journal.enqueue(name, records_of(after))
            entry.set_transition_in_progress(True)
        try:
            self._journal.write(queued)
        except BaseException:
            with entry.lock:
                entry.set_transition_in_progress(False)
            raise
        with entry.lock:
            entry.transaction = after
            # If `after.is_prepared` is true, the coordinator has decided to commit or to abort. It must now write this
            # decision as a marker (a record) into each partition of the transaction. Until then,
            # `transition_in_progress` stays True, and no other thread changes the transaction.
            entry.set_transition_in_progress(after.is_prepared)
        return after

    def _complete(self, entry: TransactionEntry) -> Transaction:
        """Write the markers of a transaction, and then the record that completes the transaction. Raises KafkaError.

        The coordinator has already decided to commit or to abort the transaction. The caller must have set
        `entry.transition_in_progress`, so that no other thread changes the transaction during this call.
        """
        decided = entry.transaction
        try:
            epoch = self._journal.leader_epoch(decided.transactional_id)
            marker = EndTransactionMarker(decided.outcome, epoch)
            self._markers.write(marker, decided.producer, decided.partitions)
        except BaseException:
            with entry.lock:
                entry.set_transition_in_progress(False)
            raise
        return self._write(entry, lambda before, now: before.complete(now), owns_transition=True)

    # -- timeouts and expiry

    def complete_prepared(self) -> None:
        """Complete all transactions in PrepareCommit and PrepareAbort: write their COMMIT or ABORT markers.

        Some of these markers can be missing, for example after a crash.
        """
        for entry in self._table.all():
            with entry.lock:
                if entry.transition_in_progress or not entry.transaction.is_prepared:
                    continue
                entry.set_transition_in_progress(True)
            with isolated(LOGGER, repr(entry.transaction.transactional_id), "the markers are not written"):
                self._complete(entry)

    def _end_hanging(self) -> None:
        """Write a marker for each transaction that is open in a log, but ended in the coordinator (hanging.py)."""
        if not self._journal.is_complete:
            return  # Some open transactions are still unknown, because their partitions are not loaded.
        known = [entry.transaction for entry in self._table.all()]
        for found, marker in list(hanging(self._markers.open_transactions(), known)):
            try:
                self._markers.begin_one(marker, found.producer, found.partition, version=0)()
            except KafkaError as error:  # The broker tries again at its next start.
                LOGGER.error("%s: the marker could not be written: %s", found.partition, error.message)

    def next_deadline(self) -> int | None:
        """Return the time (ms) at which the first open transaction exceeds its timeout.

        Return None if no transaction is open.
        """
        deadlines = [entry.transaction.deadline for entry in self._table.all()]
        return min((each for each in deadlines if each is not None), default=None)

    def abort_timed_out(self) -> None:
        """Abort the transactions that have exceeded their timeout.

        The epochs of their producers increase, so later requests with the old epochs fail.
        """
        if not self.loaded.is_set():
            return
        self.complete_prepared()
        for entry in self._table.all():
            if entry.transaction.is_timed_out(self._clock()):
                name = repr(entry.transaction.transactional_id)
                LOGGER.info("%s: the transaction has exceeded its timeout", name)
                with isolated(LOGGER, name, "the transaction is not aborted"), _unless_it_changes():
                    self._step(entry, _fence_if_timed_out)

    def expire(self, expiration: int) -> None:
        """Delete the transactional ids that no producer has used for `expiration` ms."""
        for entry in self._table.all():
            if entry.transaction.is_idle(self._clock(), expiration):
                name = repr(entry.transaction.transactional_id)
                with isolated(LOGGER, name, "the transactional id does not expire"), _unless_it_changes():
                    self._expire(entry, expiration)

    def _expire(self, entry: TransactionEntry, expiration: int) -> None:
        after = self._write(
            entry, lambda before, now: before.expire(now) if before.is_idle(now, expiration) else before
        )
        if after.state is TransactionState.DEAD:
            self._table.remove(after.transactional_id)

    # -- admin requests

    def describe(self, transactional_id: str) -> Transaction:
        """Return the stored `Transaction` of a transactional id.

        Raises INVALID_REQUEST, TRANSACTIONAL_ID_NOT_FOUND, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.
        """
        return self._table.find(transactional_id, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND).transaction

    def list(self) -> list[Transaction]:
        """Return the stored `Transaction` of each transactional id. Raises COORDINATOR_LOAD_IN_PROGRESS."""
        if not self.loaded.is_set():
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{TRANSACTIONS_TOPIC} is being read")
        return [entry.transaction for entry in self._table.all()]


@contextmanager
def _unless_it_changes() -> Iterator[None]:
    """Ignore the error CONCURRENT_TRANSACTIONS if the `with` block raises it.

    The error means that the producer is changing its transaction now. The housekeeper tries again later.
    """
    try:
        yield
    except KafkaError as error:
        if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS:
            raise


def _fence_if_timed_out(before: Transaction, now: int) -> Transaction:
    if not before.is_timed_out(now):
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "the producer has ended the transaction")
    return before.fence(now)
