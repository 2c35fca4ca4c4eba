"""Transactions: records of several partitions, and a consumer's offsets, all of them or none (KIP-98, KIP-447).

A producer with a *transactional id* has a coordinator, which keeps that id's state through restarts of both:

    init_transactions     InitProducerId: a producer id, and an epoch that shuts out every older producer of that name
    begin_transaction     nothing but a word to oneself
    send                  AddPartitionsToTxn before the first batch to a partition; then Produce, marked transactional
    send_offsets_to_...   AddOffsetsToTxn, then TxnOffsetCommit to the coordinator of the consumer's group
    commit_transaction    all batches delivered, then EndTxn: the coordinator writes a marker into every partition
    abort_transaction     what is queued is thrown away, what is under way awaited, then EndTxn

A record that cannot be delivered makes the transaction *abortable*: all that can be done is abort it, and then go on.
When the answer to a batch is not known, a copy may still come to the broker, so the epoch is raised before the next
transaction (KIP-360; InitProducerId aborts what is left of the old one by itself). Some errors are *fatal*: a newer
producer has the name, or the broker does not allow it. `TRANSITIONS` says which state follows which.

Left out: transaction version 2 (KIP-890), in which a broker adds the partition by itself and every transaction has an
epoch of its own; brokers that have it serve producers of the old kind, as this one, too.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from functools import partial

from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.coordinators import Coordinator
from hmb.client.group.interface import GroupMetadata, OffsetAndMetadata
from hmb.client.metadata import Cluster
from hmb.client.producing.batch import Identity, PartitionQueue
from hmb.client.producing.idempotence import LOST_TRACK, Identities
from hmb.protocol.enums import CoordinatorType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from hmb.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from hmb.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from hmb.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from hmb.protocol.topics import TopicPartition

# The newest versions in which the old kind of transaction is meant.
NEWEST_ADD_PARTITIONS = AddPartitionsToTxnRequest.first_version("transactions") - 1
NEWEST_ADD_OFFSETS, NEWEST_COMMIT, NEWEST_INIT = 4, 4, 5
NEWEST_END = EndTxnResponse.first_version("producer_id") - 1
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


Offsets = Mapping[TopicPartition, int | OffsetAndMetadata]


class State(Enum):
    """Of the producer's transactions."""

    UNINITIALIZED = "init_transactions() comes first"
    READY = "no transaction has begun"
    IN_TRANSACTION = "a transaction has begun"
    COMMITTING = "the transaction is being committed"
    ABORTING = "the transaction is being aborted"
    ABORTABLE_ERROR = "the transaction has failed and has to be aborted"
    FATAL_ERROR = "the producer cannot be used any more"


TRANSITIONS = {
    State.UNINITIALIZED: {State.READY, State.FATAL_ERROR},
    State.READY: {State.IN_TRANSACTION, State.FATAL_ERROR},
    State.IN_TRANSACTION: {State.COMMITTING, State.ABORTING, State.ABORTABLE_ERROR, State.FATAL_ERROR},
    State.COMMITTING: {State.COMMITTING, State.IN_TRANSACTION, State.READY, State.ABORTABLE_ERROR, State.FATAL_ERROR},
    State.ABORTING: {State.ABORTING, State.READY, State.FATAL_ERROR},
    State.ABORTABLE_ERROR: {State.ABORTING, State.FATAL_ERROR},
    State.FATAL_ERROR: set(),
}


class Transactions(Identities):
    """The state of a transactional producer, shared by the program's thread and the senders'."""

    def __init__(
        self, cluster: Cluster, transactional_id: str, timeout: float, patience: float, retry_backoff: float
    ) -> None:
        self.transactional_id: str = transactional_id
        self._cluster, self._timeout, self._patience = cluster, timeout, patience
        self._retry_backoff = retry_backoff
        self._coordinator = Coordinator(cluster, CoordinatorType.TRANSACTION, transactional_id, patience, retry_backoff)
        self._asking = threading.Lock()  # one request to the coordinator at a time; taken before the other lock
        self._lock = threading.Lock()  # guards all below; nothing is waited for under it
        self._state = State.UNINITIALIZED
        self._error: Exception | None = None  # why it is abortable or fatal
        self._identity: Identity | None = None
        self._partitions: set[TopicPartition] = set()  # that the coordinator knows to be in the transaction
        self._is_begun = False  # the coordinator may know of a transaction
        self._needs_new_epoch = False

    def identity(self, connection: Connection) -> Identity | None:
        return self._identity

    def new_epoch(self, queue: PartitionQueue) -> None:
        """The coordinator gives it, when the transaction is aborted."""
        self._needs_new_epoch = True

    def failed(self, error: Exception) -> None:
        """A batch is given up, and the transaction with it."""
        with self._lock:
            if isinstance(error, KafkaError) and error.code in LOST_TRACK:
                self._needs_new_epoch = True
            self._fail(error)

    def join(self, partitions: Iterable[TopicPartition]) -> None:
        """Tell the coordinator which partitions are new in the transaction."""
        with self._asking:
            new = sorted(set(partitions) - self._partitions)
            if not new:
                return
            topics: dict[str, list[int]] = {}
            for topic, partition in new:
                topics.setdefault(topic, []).append(partition)
            self._is_begun = True
            who = self._known_identity()
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=who.producer_id,
                v3_and_below_producer_epoch=who.producer_epoch,
                v3_and_below_topics=[
                    AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction.AddPartitionsToTxnTopic(
                        name=name, partitions=numbers
                    )
                    for name, numbers in topics.items()
                ],
            )
            newest = NEWEST_ADD_PARTITIONS
            self._coordinator.ask(AddPartitionsToTxnRequest, newest, lambda version: request, _refused_partitions)
            self._partitions.update(new)

    def initialize(self) -> None:
        """Shut out older producers of this transactional id, and end what they left."""
        self._expect("init_transactions", State.UNINITIALIZED)
        with self._asking_coordinator():
            self._renew_identity()
        self._become(State.READY)

    def begin(self) -> None:
        """From now on, all that is sent belongs together."""
        self._expect("begin_transaction", State.READY)
        self._become(State.IN_TRANSACTION)

    @property
    def can_abort(self) -> bool:
        """Whether a transaction is there that can be aborted."""
        return State.ABORTING in TRANSITIONS[self._state]

    def check_sending(self) -> None:
        """KafkaError unless a record can be sent now."""
        if self._state is not State.IN_TRANSACTION:
            self._expect("send", State.IN_TRANSACTION)

    def commit(self, flush: Callable[[], None]) -> None:
        """Deliver all, then commit. May be repeated when the coordinator could not be reached."""
        self._expect("commit_transaction", State.IN_TRANSACTION, State.COMMITTING)
        before = self._state
        self._become(State.COMMITTING)
        try:
            flush()
        except BaseException:  # Ctrl-C, or not in time: the coordinator was not asked yet, so it may still be aborted
            with self._lock:
                if self._state is State.COMMITTING:
                    self._state = before
            raise
        self._expect("commit_transaction", State.COMMITTING)  # a record may have failed
        with self._asking_coordinator():
            if self._is_begun:
                self._end(committed=True)
        self._finish()

    def abort(self, flush: Callable[[], None]) -> None:
        """Throw away what is queued, then abort. May be repeated when the coordinator could not be reached."""
        self._expect("abort_transaction", State.IN_TRANSACTION, State.ABORTABLE_ERROR, State.ABORTING)
        self._become(State.ABORTING)
        self.doomed = KafkaError(ErrorCode.TRANSACTION_ABORTABLE, "not sent, for its transaction was aborted")
        flush()
        with self._asking_coordinator():
            if self._needs_new_epoch:
                self._renew_identity()
            elif self._is_begun:
                self._end(committed=False)
        self._finish()

    def send_offsets(self, offsets: Offsets, group: GroupMetadata | str) -> None:
        """Commit a group's offsets with the transaction; a group's id alone is for one without members."""
        self._expect("send_offsets_to_transaction", State.IN_TRANSACTION)
        group = GroupMetadata(group) if isinstance(group, str) else group
        who = self._known_identity()
        coordinator = Coordinator(
            self._cluster, CoordinatorType.GROUP, group.group_id, self._patience, self._retry_backoff
        )
        try:
            with self._asking_coordinator():
                self._is_begun = True
                added = AddOffsetsToTxnRequest(
                    transactional_id=self.transactional_id,
                    producer_id=who.producer_id,
                    producer_epoch=who.producer_epoch,
                    group_id=group.group_id,
                )
                self._coordinator.ask(AddOffsetsToTxnRequest, NEWEST_ADD_OFFSETS, lambda version: added, _refused)
                commit = partial(_offset_commit, self.transactional_id, who, group, offsets)
                coordinator.ask(TxnOffsetCommitRequest, NEWEST_COMMIT, commit, _refused_offsets)
        except (KafkaError, ConnectionFailed) as error:
            with self._lock:
                self._fail(error)
            raise
        finally:
            coordinator.forget()

    def close(self) -> None:
        """End what is waited for, and close the connection; from any thread."""
        self._coordinator.close()
        if self._asking.acquire(blocking=False):  # else a thread waits, or did: it closes the connection
            try:
                self._coordinator.forget()
            finally:
                self._asking.release()

    def _renew_identity(self) -> None:
        """With a new epoch, or at first."""
        before = self._identity

        def request(version: int) -> InitProducerIdRequest:
            request = InitProducerIdRequest(
                transactional_id=self.transactional_id, transaction_timeout_ms=int(self._timeout * 1000)
            )
            if before is not None and version >= FIRST_INIT_WITH_EPOCH:
                request.producer_id, request.producer_epoch = before
            return request

        response: InitProducerIdResponse = self._coordinator.ask(InitProducerIdRequest, NEWEST_INIT, request, _refused)
        self._identity = Identity(response.producer_id, response.producer_epoch)

    def _end(self, *, committed: bool) -> None:
        who = self._known_identity()
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=who.producer_id,
            producer_epoch=who.producer_epoch,
            committed=committed,
        )
        self._coordinator.ask(EndTxnRequest, NEWEST_END, lambda version: request, _refused)

    def _known_identity(self) -> Identity:
        assert self._identity is not None, "no transaction begins before init_transactions"
        return self._identity

    def _finish(self) -> None:
        with self._lock:
            self._partitions.clear()
            self._is_begun = self._needs_new_epoch = False
            self.doomed = self._error = None
        self._become(State.READY)

    @contextmanager
    def _asking_coordinator(self) -> Iterator[None]:
        """One thread at a time; what the coordinator says may be the end of this producer."""
        with self._asking:
            try:
                yield
            except KafkaError as error:
                if error.code in FATAL or error.code is ErrorCode.INVALID_PRODUCER_EPOCH:
                    with self._lock:
                        self._fail(error, State.FATAL_ERROR)
                raise

    def _expect(self, what: str, *states: State) -> None:
        """KafkaError, with the reason, in any other state."""
        with self._lock:
            if self._state not in states:
                why = "" if self._error is None else f": {self._error}"
                code = self._error.code if isinstance(self._error, KafkaError) else ErrorCode.INVALID_TXN_STATE
                raise KafkaError(code, f"{what} of {self.transactional_id!r}: {self._state.value}{why}")

    def _become(self, state: State) -> None:
        with self._lock:
            assert state in TRANSITIONS[self._state], f"{self._state} -> {state}"
            self._state = state

    def _fail(self, error: Exception, state: State = State.ABORTABLE_ERROR) -> None:
        """Call it with the lock. The first error is the one that is told."""
        if isinstance(error, KafkaError) and error.code in FATAL:
            state = State.FATAL_ERROR
        if state in TRANSITIONS[self._state]:
            self._state = state
            self._error = error
            self.doomed = KafkaError(ErrorCode.TRANSACTION_ABORTABLE, f"not sent, for its transaction failed: {error}")


def _refused(response: AddOffsetsToTxnResponse | EndTxnResponse | InitProducerIdResponse) -> list[tuple[None, int]]:
    return [(None, response.error_code)]


def _refused_partitions(response: AddPartitionsToTxnResponse) -> list[tuple[TopicPartition, int]]:
    return [
        (TopicPartition(topic.name, result.partition_index), result.partition_error_code)
        for topic in response.results_by_topic_v3_and_below
        for result in topic.results_by_partition
    ]


def _refused_offsets(response: TxnOffsetCommitResponse) -> list[tuple[TopicPartition, int]]:
    return [
        (TopicPartition(topic.name, partition.partition_index), partition.error_code)
        for topic in response.topics
        for partition in topic.partitions
    ]


def _offset_commit(
    transactional_id: str, who: Identity, group: GroupMetadata, offsets: Offsets, version: int
) -> TxnOffsetCommitRequest:
    partition_of = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic.TxnOffsetCommitRequestPartition
    topics: dict[str, TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic] = {}
    for (name, partition), offset in offsets.items():
        it = OffsetAndMetadata(offset) if isinstance(offset, int) else offset
        topic = topics.setdefault(name, TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=name))
        topic.partitions.append(
            partition_of(
                partition_index=partition,
                committed_offset=it.offset,
                committed_leader_epoch=it.leader_epoch,
                committed_metadata=it.metadata,
            )
        )
    request = TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group.group_id,
        producer_id=who.producer_id,
        producer_epoch=who.producer_epoch,
        topics=list(topics.values()),
    )
    if version >= FIRST_COMMIT_WITH_MEMBER:
        request.generation_id, request.member_id = group.generation_id, group.member_id
        request.group_instance_id = group.group_instance_id
    return request
