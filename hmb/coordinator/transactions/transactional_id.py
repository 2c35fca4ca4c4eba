"""One transactional id: its producer id, its epoch, and its current transaction.

When an application restarts with the transactional id `orders`, it must continue as the same producer. The coordinator
therefore stores a producer id, which stays the same, and an epoch, which increases with each start. The broker rejects
requests with an older epoch. These requests come from a *zombie*: a producer that was paused or disconnected, and that
a newer producer has replaced.

A `Transaction` never changes. Each method that handles a request returns a new `Transaction` or raises KafkaError. The
caller (coordinator.py) stores the new `Transaction` before it sends the response. If the new state is PrepareCommit or
PrepareAbort, the caller also writes the markers. It then calls `complete`.

With transaction version 2 (KIP-890), the epoch increases at the end of each transaction (`end`). If a record of an
earlier transaction arrives late, its batch contains an old epoch, so the broker rejects it. A producer that receives no
response to EndTxn sends the same request again. The second request contains the epoch from before the increase, so the
coordinator recognizes the repetition.

An epoch is a signed 16-bit number, so it cannot be greater than 32,767. When the epochs of a producer id are used up,
the transactional id gets a new producer id, and the epoch begins at 0 again. This can happen at the end of a
transaction. The markers of this transaction still need the old producer id. The field `next_producer_id` therefore
holds the new producer id until all markers are written.

For example, the producer of `orders` has producer id 7 and epoch 0, and crashes. After its restart, this producer has
epoch 1. A delayed Produce request with epoch 0 fails with PRODUCER_FENCED or INVALID_PRODUCER_EPOCH.

Invariants: `partitions` is empty in all states except Ongoing, PrepareCommit and PrepareAbort. All changes of the state
follow the table in states.py.

Source: KIP-98, KIP-360, KIP-890; Kafka's `TransactionMetadata`, `TransactionCoordinator`.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any, NamedTuple

from hmb.coordinator.transactions.states import (
    BETWEEN_TRANSACTIONS,
    PREPARED,
    TRANSITIONS,
    TransactionEvent,
    TransactionState,
)
from hmb.protocol.enums import MAX_PRODUCER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition
from hmb.records import NO_TIMESTAMP, ControlType
from hmb.records.producer_numbers import ProducerIdAndEpoch

STILL_ENDING = "the last transaction of this id still ends: its markers are being written; try again"
VERSION_2 = 2  # the transaction version in which each transaction has its own epoch
PREPARE = {False: TransactionState.PREPARE_ABORT, True: TransactionState.PREPARE_COMMIT}
COMPLETE = {False: TransactionState.COMPLETE_ABORT, True: TransactionState.COMPLETE_COMMIT}
AllocateId = Callable[[], int]


class Transaction(NamedTuple):
    """The stored value of one transactional id. Times are in ms since 1970.

    - All changes of `state` follow the table `TRANSITIONS` in states.py.
    - A `Transaction` is immutable: a method that changes a field returns a new object.
    - While the producer id stays the same, the epoch never decreases.
    """

    transactional_id: str
    producer_id: int
    epoch: int = NO_PRODUCER_EPOCH
    timeout: int = 0  # ms
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started: int = NO_TIMESTAMP
    updated: int = NO_TIMESTAMP
    # A producer raises its epoch with EndTxn (transaction version 2) or with an InitProducerId request that contains
    # the epoch. This field contains the old epoch. After other increases, for example a transaction timeout, it
    # contains NO_PRODUCER_EPOCH. The journal omits this field.
    #
    # If the response with the new epoch is lost, the producer still has the old epoch. So the coordinator also accepts
    # an InitProducerId request with `last_epoch`.
    last_epoch: int = NO_PRODUCER_EPOCH
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    version: int = 0  # the transaction version of the producer's last request

    @property
    def producer(self) -> ProducerIdAndEpoch:
        return ProducerIdAndEpoch(self.producer_id, self.epoch)

    @property
    def is_between_transactions(self) -> bool:
        return self.state in BETWEEN_TRANSACTIONS

    @property
    def is_prepared(self) -> bool:
        """Whether the decision to commit or abort is made, but the transaction is not complete.

        Some partitions of the transaction can still lack their COMMIT or ABORT marker.
        """
        return self.state in PREPARED

    @property
    def outcome(self) -> ControlType:
        """The decision about a transaction in the state PrepareCommit or PrepareAbort."""
        return ControlType.COMMIT if self.state is TransactionState.PREPARE_COMMIT else ControlType.ABORT

    @property
    def deadline(self) -> int | None:
        """The time (ms) at which the open transaction exceeds its timeout, or None if no transaction is open."""
        return self.started + self.timeout + 1 if self.state is TransactionState.ONGOING else None

    def is_timed_out(self, now: int) -> bool:
        return self.deadline is not None and self.deadline <= now

    def _after(self, event: TransactionEvent, now: int, **changes: Any) -> Transaction:
        before = {"previous_producer_id": self.producer_id, "updated": now}
        return self._replace(state=TRANSITIONS.next(self.state, event), **(before | changes))

    # -- InitProducerId

    def init(self, timeout: int, known: ProducerIdAndEpoch | None, now: int, allocate: AllocateId) -> Transaction:
        """Assign a new epoch to a producer that starts, or that continues after an error (KIP-360).

        `known` is the id and epoch of a continuing producer, or None for a starting producer. While this
        transactional id has no epoch, the method accepts every `known`.

        - If `known` has a wrong producer id, the method raises PRODUCER_FENCED.
        - If a transaction is being committed or aborted, the method raises CONCURRENT_TRANSACTIONS.
        - If a transaction is open, the method decides to abort it. The producer must repeat the request.
        - If `known` has the epoch `last_epoch`, the producer has missed a response. It gets the current epoch
          again.
        - If `known` has neither `last_epoch` nor the current epoch, the method raises PRODUCER_FENCED. For example,
          a newer producer has started.

        Also raises the errors of `allocate`.
        """
        if known is not None and not self._is_known(known):
            raise self._fenced(known)
        if self.is_prepared:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, STILL_ENDING)
        if self.state is TransactionState.ONGOING:
            return self.fence(now)
        start = {"timeout": timeout, "partitions": frozenset(), "started": NO_TIMESTAMP}
        if known is not None and self.epoch not in (NO_PRODUCER_EPOCH, known.epoch):
            if known.epoch != self.last_epoch:
                raise self._fenced(known)
            return self._after(TransactionEvent.INITIALIZED, now, **start)
        last = NO_PRODUCER_EPOCH if known is None else self.epoch
        identity = {"producer_id": allocate(), "epoch": 0} if self._is_exhausted else {"epoch": self.epoch + 1}
        return self._after(TransactionEvent.INITIALIZED, now, last_epoch=last, **identity, **start)

    def _is_known(self, known: ProducerIdAndEpoch) -> bool:
        if self.epoch == NO_PRODUCER_EPOCH:  # The id is new, or its old epoch has expired.
            return True
        has_rotated = known.producer_id == self.previous_producer_id and known.epoch >= MAX_PRODUCER_EPOCH - 1
        return known.producer_id == self.producer_id or has_rotated

    def _fenced(self, producer: ProducerIdAndEpoch) -> KafkaError:
        why = f"{self.transactional_id!r} now belongs to epoch {self.epoch} of producer {self.producer_id}"
        return KafkaError(ErrorCode.PRODUCER_FENCED, f"epoch {producer.epoch} is fenced: {why}")

    @property
    def _is_exhausted(self) -> bool:
        return self.epoch >= MAX_PRODUCER_EPOCH - 1

    def fence(self, now: int) -> Transaction:
        """Decide to abort the transaction, and increase the epoch. Later requests with the old epoch then fail."""
        epochs = {"epoch": min(self.epoch + 1, MAX_PRODUCER_EPOCH), "last_epoch": NO_PRODUCER_EPOCH}
        fenced = self._after(TransactionEvent.FENCED, now, **epochs)
        return fenced._after(TransactionEvent.EPOCH_RAISED, now, version=VERSION_2)

    # -- AddPartitionsToTxn, AddOffsetsToTxn, Produce

    def check(self, producer: ProducerIdAndEpoch) -> None:
        """Check that this producer may write records of a transaction.

        Raises INVALID_PRODUCER_ID_MAPPING for a wrong producer id, and PRODUCER_FENCED for a wrong epoch. Raises
        CONCURRENT_TRANSACTIONS while the previous transaction is being committed or aborted.
        """
        self._check_id(producer)
        if producer.epoch != self.epoch:
            raise self._fenced(producer)
        if self.is_prepared:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, STILL_ENDING)

    def _check_id(self, producer: ProducerIdAndEpoch) -> None:
        if producer.producer_id != self.producer_id:
            why = f"{self.transactional_id!r} is producer {self.producer_id}, not {producer.producer_id}"
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, why)

    def add(self, producer: ProducerIdAndEpoch, partitions: Set[TopicPartition], version: int, now: int) -> Transaction:
        """Add partitions to the transaction. If no transaction is open, start one. Raises the errors of `check`."""
        self.check(producer)
        if self.state is TransactionState.ONGOING and partitions <= self.partitions:
            return self
        started = now if self.is_between_transactions else self.started
        return self._after(
            TransactionEvent.PARTITION_ADDED,
            now,
            partitions=self.partitions | partitions,
            started=started,
            version=version,
        )

    # -- EndTxn

    def end(
        self, producer: ProducerIdAndEpoch, committed: bool, version: int, now: int, allocate: AllocateId
    ) -> Transaction:
        """Decide to commit or to abort the transaction.

        A producer that has received no response repeats EndTxn. If the transaction has already ended with the
        same decision, the method changes nothing.

        The method raises these errors:

        - CONCURRENT_TRANSACTIONS: the coordinator has made the same decision, but has not written all markers yet.
        - INVALID_TXN_STATE: the coordinator has made the opposite decision, or no transaction is open. But with
          transaction version 2 (KIP-890), a producer can abort without an open transaction.
        - INVALID_PRODUCER_ID_MAPPING: the producer id is wrong.
        - PRODUCER_FENCED: the epoch is wrong.
        - The errors of `allocate`, which returns a new producer id.
        """
        is_repetition = self._is_repetition(producer, version)
        if not is_repetition:
            self._check_id(producer)
        if self.epoch != producer.epoch and not is_repetition:
            raise self._fenced(producer)
        if self.is_prepared and self.state is PREPARE[committed]:
            if version >= VERSION_2 and not is_repetition:
                raise self._fenced(producer)
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, STILL_ENDING)
        if self.state is COMPLETE[committed] and (is_repetition or version < VERSION_2):
            return self
        aborts_nothing = not committed and self.is_between_transactions
        may_abort_nothing = version >= VERSION_2 and aborts_nothing and not is_repetition
        if self.state is not TransactionState.ONGOING and not may_abort_nothing:
            what = "committed" if committed else "aborted"
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, f"a transaction in state {self.state.label} cannot be {what}")
        rotates = version >= VERSION_2 and self._is_exhausted
        return self._prepare(committed, version, now, allocate() if rotates else NO_PRODUCER_ID)

    def _is_repetition(self, producer: ProducerIdAndEpoch, version: int) -> bool:
        """Return whether the producer sends the same EndTxn request again, because it has received no response.

        The first EndTxn request has increased the epoch, so the repeated request contains the epoch before the current
        one.
        """
        if version < VERSION_2 or self.state in (TransactionState.ONGOING, TransactionState.EMPTY):
            return False
        has_rotated = producer == (self.previous_producer_id, MAX_PRODUCER_EPOCH - 1) and self.epoch == 0
        is_one_before = producer == (self.producer_id, self.epoch - 1)
        return is_one_before or (has_rotated and not self.is_prepared)

    def _prepare(self, committed: bool, version: int, now: int, next_producer_id: int) -> Transaction:
        changes: dict[str, Any] = {"version": version, "next_producer_id": next_producer_id}
        if version >= VERSION_2 and self.epoch < MAX_PRODUCER_EPOCH:
            changes |= {"epoch": self.epoch + 1, "last_epoch": self.epoch}
        if self.is_between_transactions:
            changes["started"] = now
        return self._after(TransactionEvent.COMMIT if committed else TransactionEvent.ABORT, now, **changes)

    def complete(self, now: int) -> Transaction:
        """Return a copy of this object in the state CompleteCommit or CompleteAbort, with no partitions.

        Before this call, the caller has written a COMMIT or ABORT marker to each partition of the transaction.
        """
        changes: dict[str, Any] = {"partitions": frozenset(), "next_producer_id": NO_PRODUCER_ID}
        if self.next_producer_id != NO_PRODUCER_ID:
            changes |= {"producer_id": self.next_producer_id, "epoch": 0}
        return self._after(TransactionEvent.MARKERS_WRITTEN, now, **changes)

    # -- expiry

    def is_idle(self, now: int, expiration: int) -> bool:
        """Return whether no producer has used this transactional id for `expiration` ms."""
        return self.is_between_transactions and self.updated + expiration <= now

    def expire(self, now: int) -> Transaction:
        """Return a copy of this object in the state Dead. The coordinator then deletes the transactional id."""
        return self._after(TransactionEvent.EXPIRED, now)
