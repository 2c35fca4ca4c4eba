"""The transaction coordinator: the table of transactional ids, for the threads of many connections.

What happens to an id is told in transaction.py. Here a step is made of it: under the id's lock the new value takes
its place in the journal, outside of the lock it is written, and then it is the truth. Meanwhile the id *moves*, and
whoever wants another step is told CONCURRENT_TRANSACTIONS.

A transaction ends in three writes: the decision; the markers, in all partitions, synced; that it is complete. They are
made one after the other in the thread of the EndTxn, which is answered at the end. So its readers see the transaction
when its producer knows that it is over, and the producer's next one has nothing to wait for. What stops half-way (a
full disk, a kill) goes on when the housekeeper comes by, or at the next start: the decision stands.

Records go into a log under the id's lock (`writing`), and the decision, too, takes it. So either a record comes before
the decision, and then before the marker, or it is refused: no record can open again a transaction that is over, for
which nobody would ever write a marker (a *hanging transaction*, KIP-890).

Source: KIP-98, KIP-890; Kafka's `TransactionCoordinator`, `TransactionStateManager`, `TransactionMarkerChannelManager`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Container, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hmb.coordinator.group_records import Key
from hmb.coordinator.journal import Journal
from hmb.coordinator.producer_ids import ProducerIdAndEpoch, ProducerIds
from hmb.coordinator.transactions.hanging import hanging
from hmb.coordinator.transactions.markers import MarkerWriter
from hmb.coordinator.transactions.records import KEYS, TransactionLogKey, records_of, transaction_of
from hmb.coordinator.transactions.states import TransactionState
from hmb.coordinator.transactions.transactional_id import VERSION_2, Transaction
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TRANSACTIONS_TOPIC, TopicPartition
from hmb.records import EndTransactionMarker
from hmb.storage.isolation import isolated
from hmb.storage.log import now_ms

LOGGER = logging.getLogger(__name__)
LOOK_AGAIN = 0.5  # seconds: how often the loader sees whether it is to stop
Change = Callable[[Transaction, int], Transaction]


@dataclass(slots=True, eq=False)
class _Entry:
    """One transactional id."""

    transaction: Transaction  # as it is written down
    is_moving: bool = False  # to the next value, which is being written; or it gets its markers
    # Guards the two; taken before the locks of groups and logs. Nobody holds it while a disk syncs, unless a topic
    # wants that after so many records (`flush.messages`).
    lock: threading.Lock = field(default_factory=threading.Lock)


class TransactionCoordinator:
    """All transactional ids of this broker. Thread-safe."""

    def __init__(
        self,
        journal: Journal,
        producer_ids: ProducerIds,
        markers: MarkerWriter,
        max_timeout: Callable[[], int],
        *,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        """`max_timeout` in ms."""
        self._journal = journal
        self._producer_ids = producer_ids
        self._markers = markers
        self._max_timeout = max_timeout
        self._clock = clock
        self._lock = threading.Lock()  # guards the table; no lock is taken under it
        self._entries: dict[str, _Entry] = {}
        self.loaded = threading.Event()
        self._stopping = threading.Event()
        self._loader = threading.Thread(target=self._load, name="transaction-loader", daemon=True)

    # -- start and stop

    def start(self) -> None:
        """Load the ids, in a thread; until then they are not served."""
        self._loader.start()

    def stop(self, deadline: float) -> None:
        self._stopping.set()
        if self._loader.is_alive():
            self._loader.join(max(0.0, deadline - time.monotonic()))

    def _load(self) -> None:
        """Read the journal, then end what is decided: some of it in the groups' journal, which must be read before."""
        while not self._markers.groups.loaded.wait(LOOK_AGAIN):
            if self._stopping.is_set():
                return
        self._journal.load(self._replay, self._stopping, KEYS)
        if not self._stopping.is_set():
            self.complete_decided()
            self._end_hanging()
            self.loaded.set()

    def _replay(self, key: Key, value: Any, producer_id: int | None) -> None:
        assert isinstance(key, TransactionLogKey)
        transaction = transaction_of(key, value)
        self._entries[key.transactional_id] = _Entry(transaction)
        self._producer_ids.note(max(transaction.producer_id, transaction.next_producer_id))

    def make_topic(self) -> None:
        """Make the journal's topic where there is none: somebody asks for a coordinator. Raises KafkaError."""
        self._journal.make_topic()

    def on_topics_deleted(self, names: Container[str]) -> None:
        """Forget all transactional ids if the journal's topic is among the deleted topics."""
        if TRANSACTIONS_TOPIC in names:
            with self._lock:
                self._entries = {}

    # -- producers

    def init_producer(
        self, transactional_id: str, timeout: int, known: ProducerIdAndEpoch | None
    ) -> ProducerIdAndEpoch:
        """An id and epoch for a producer of this name; whoever had it before is shut out.

        Raises INVALID_REQUEST, INVALID_TRANSACTION_TIMEOUT, CONCURRENT_TRANSACTIONS, PRODUCER_FENCED,
        NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.
        """
        _check_name(transactional_id)
        if not 0 < timeout <= self._max_timeout():
            why = f"{timeout} ms are not in 1 .. {self._max_timeout()} (transaction.max.timeout.ms)"
            raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT, why)
        entry = self._find_or_make(transactional_id)
        after = self._step(entry, lambda before, now: before.init(timeout, known, now, self._producer_ids.allocate))
        if after.state is not TransactionState.EMPTY:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "the transaction that was open has been aborted")
        LOGGER.info("%r is producer %d, epoch %d", transactional_id, *after.producer)
        return after.producer

    def add_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Set[TopicPartition], version: int
    ) -> None:
        """These partitions take part in the transaction.

        Raises INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS and as `_find`.
        """
        entry = self._find(transactional_id)
        self._step(entry, lambda before, now: before.add(producer, partitions, version, now))

    def verify(self, transactional_id: str, producer: ProducerIdAndEpoch) -> Set[TopicPartition]:
        """The partitions that take part in the transaction. Raises as `add_partitions` does."""
        entry = self._find(transactional_id)
        with entry.lock:
            entry.transaction.check(producer)
            return entry.transaction.partitions

    @contextmanager
    def writing(self, transactional_id: str, producer: ProducerIdAndEpoch, partition: TopicPartition) -> Iterator[None]:
        """While records of the transaction are appended to a partition, it is not decided.

        Raises TRANSACTION_ABORTABLE: the partition takes no part in it; and as `add_partitions` does.
        """
        entry = self._find(transactional_id)
        with entry.lock:
            entry.transaction.check(producer)
            if partition not in entry.transaction.partitions:
                why = f"{partition} is no part of the transaction of {transactional_id!r}"
                raise KafkaError(ErrorCode.TRANSACTION_ABORTABLE, why)
            yield

    def end(
        self, transactional_id: str, producer: ProducerIdAndEpoch, version: int, *, committed: bool
    ) -> ProducerIdAndEpoch:
        """Commit or abort; returns what the producer is from now on.

        Raises INVALID_TXN_STATE and as `add_partitions` does.
        """
        entry = self._find(transactional_id)
        after = self._step(
            entry, lambda before, now: before.end(producer, committed, version, now, self._producer_ids.allocate)
        )
        return after.producer if version >= VERSION_2 else producer

    def begin_marker(
        self, marker: EndTransactionMarker, producer: ProducerIdAndEpoch, partition: TopicPartition, version: int
    ) -> Callable[[], None]:
        """End a transaction in one partition, whatever the coordinator knows about it.

        Returns a function that waits until the end is durable. Both raise KafkaError.
        """
        return self._markers.begin_one(marker, producer, partition, version)

    # -- steps

    def _find(self, transactional_id: str) -> _Entry:
        """Raises INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS."""
        _check_name(transactional_id)
        self._journal.check_coordinates(transactional_id)
        entry = self._entries.get(transactional_id)
        if entry is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"{transactional_id!r} is unknown")
        return entry

    def _find_or_make(self, transactional_id: str) -> _Entry:
        self._journal.check_coordinates(transactional_id)
        if transactional_id not in self._entries:
            made = Transaction(transactional_id, self._producer_ids.allocate(), updated=self._clock())
            with self._lock:
                return self._entries.setdefault(transactional_id, _Entry(made))
        return self._entries[transactional_id]

    def _step(self, entry: _Entry, change: Change) -> Transaction:
        """Let it change, durably, and see to what comes of that. Raises what `change` raises, and as `_write`."""
        after = self._write(entry, change)
        if not after.is_decided:
            return after
        try:
            return self._complete(entry)
        except KafkaError as error:  # the decision stands all the same
            LOGGER.error("%r: its markers are not written yet: %s", after.transactional_id, error.message)
            return after.complete(self._clock())

    def _write(self, entry: _Entry, change: Change, *, goes_on: bool = False) -> Transaction:
        """`goes_on`: it is this thread that moves it already.

        Raises what `change` raises, CONCURRENT_TRANSACTIONS, NOT_COORDINATOR, UNKNOWN_SERVER_ERROR: then nothing has
        changed.
        """
        with entry.lock:
            before = entry.transaction
            if before.state is TransactionState.DEAD:  # since it was looked up: the next time there is a new one
                raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, f"{before.transactional_id!r} has just expired")
            after = change(before, self._clock())
            if entry.is_moving and not goes_on:
                raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
            if after is before:
                return before
            place = self._journal.enqueue(before.transactional_id, records_of(after))
            entry.is_moving = True
        try:
            self._journal.write(place)
        except BaseException:
            with entry.lock:
                entry.is_moving = False
            raise
        with entry.lock:
            entry.transaction = after
            entry.is_moving = after.is_decided  # and then it is this thread that goes on
        return after

    def _complete(self, entry: _Entry) -> Transaction:
        """Write the markers of one that is decided and is moved by this thread. Raises KafkaError."""
        decided = entry.transaction
        try:
            epoch = self._journal.leader_epoch(decided.transactional_id)
            marker = EndTransactionMarker(decided.outcome, epoch)
            self._markers.write(marker, decided.producer, decided.partitions)
        except BaseException:
            with entry.lock:
                entry.is_moving = False
            raise
        return self._write(entry, lambda before, now: before.complete(now), goes_on=True)

    # -- time

    def complete_decided(self) -> None:
        """End the transactions that are decided, but were not ended: their markers failed, or the broker was killed."""
        for entry in self._all():
            with entry.lock:
                if entry.is_moving or not entry.transaction.is_decided:
                    continue
                entry.is_moving = True
            with isolated(LOGGER, repr(entry.transaction.transactional_id), "its markers are not written"):
                self._complete(entry)

    def _end_hanging(self) -> None:
        """End the transactions that are open in a log and over for this coordinator (hanging.py)."""
        if not self._journal.is_complete:
            return  # the partition that could not be read may know them
        known = [entry.transaction for entry in self._all()]
        for found, marker in list(hanging(self._markers.open_transactions(), known)):
            try:
                self._markers.begin_one(marker, found.producer, found.partition, version=0)()
            except KafkaError as error:  # the next start tries again
                LOGGER.error("%s: the marker is not written: %s", found.partition, error.message)

    def abort_late(self) -> None:
        """Abort the transactions that have exceeded their timeout, and fence their producers."""
        if not self.loaded.is_set():
            return
        self.complete_decided()
        for entry in self._all():
            if entry.transaction.is_late(self._clock()):
                name = repr(entry.transaction.transactional_id)
                LOGGER.info("%s: its transaction has exceeded its timeout", name)
                with isolated(LOGGER, name, "its transaction is not aborted"), _unless_it_changes():
                    self._step(entry, _fence_if_late)

    def expire(self, expiration: int) -> None:
        """Delete the transactional ids that nobody has used for `expiration` ms."""
        for entry in self._all():
            if entry.transaction.is_idle(self._clock(), expiration):
                name = repr(entry.transaction.transactional_id)
                with isolated(LOGGER, name, "it does not expire"), _unless_it_changes():
                    self._expire(entry, expiration)

    def _expire(self, entry: _Entry, expiration: int) -> None:
        after = self._write(
            entry, lambda before, now: before.expire(now) if before.is_idle(now, expiration) else before
        )
        if after.state is TransactionState.DEAD:
            with self._lock:
                self._entries.pop(after.transactional_id, None)

    # -- admins

    def _all(self) -> list[_Entry]:
        with self._lock:
            return list(self._entries.values())

    def describe(self, transactional_id: str) -> Transaction:
        """Raises INVALID_REQUEST, TRANSACTIONAL_ID_NOT_FOUND, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS."""
        _check_name(transactional_id)
        self._journal.check_coordinates(transactional_id)
        entry = self._entries.get(transactional_id)
        if entry is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"{transactional_id!r} is unknown")
        return entry.transaction

    def list(self) -> list[Transaction]:
        """All of them. Raises COORDINATOR_LOAD_IN_PROGRESS."""
        if not self.loaded.is_set():
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{TRANSACTIONS_TOPIC} is being read")
        return [entry.transaction for entry in self._all()]


@contextmanager
def _unless_it_changes() -> Iterator[None]:
    """Leave a transaction alone that its producer is changing at this moment; the next round looks at it again."""
    try:
        yield
    except KafkaError as error:
        if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS:
            raise


def _fence_if_late(before: Transaction, now: int) -> Transaction:
    if not before.is_late(now):
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "its producer was faster")
    return before.fence(now)


def _check_name(transactional_id: str) -> None:
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
