"""The journals of the coordinators: topics that they write and read themselves.

The groups' is `__consumer_offsets`, that of the transactions `__transaction_state`. A group belongs to one partition
of its topic, by the hash of its id, and so does a transactional id, as in Kafka; so a data directory can go from one
broker to the other. What the partitions hold is in group_records.py and transaction_records.py, how they are read at a
start in journal_loading.py.

Writing is a group commit. Committing an offset is a record of some hundred bytes, and a disk syncs a thousand times a
second, not more, so those who commit at the same time share a batch and a sync:

    enqueue   takes the next place in the partition's queue; no I/O, so it may be called under a group's lock
    write     waits for the partition's turn; who gets it writes all that is queued as one batch, syncs, and lets
              `apply` of each come true in the order of the queue; the others find that theirs is done

So there is one order: that of the queue is that of the log, and that in which the coordinator's memory changes. And
what is in memory is durable: nobody is told an offset that could go back. "Durable" is what acks=all is for producers,
`log.flush.acks.all`.

What is written within a transaction, committed offsets, stands in a batch of its own that bears the producer's name.
The marker that ends the transaction has its place in the queue as well: so it comes behind all that it is about.

Invariant: a `Pending` is done once it has left the queue and the turn in which it left is over.

Source: Kafka's `CoordinatorRuntime`, `GroupCoordinatorService`, `TransactionStateManager`.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Protocol

from hmb.coordinator.group import KeyAndValue
from hmb.coordinator.group_records import KEYS, Keys
from hmb.coordinator.journal_loading import Replay, newest_records
from hmb.coordinator.known_names import cached_by_name
from hmb.coordinator.producer_ids import ProducerIdAndEpoch
from hmb.protocol.errors import ErrorCode, KafkaError, ProtocolError
from hmb.protocol.topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from hmb.records import RECORD_BATCH_OVERHEAD, EndTransactionMarker, Record, encode_batch
from hmb.storage.log import Log, now_ms

LOGGER = logging.getLogger(__name__)
DECODERS = {OFFSETS_TOPIC: "offsets", TRANSACTIONS_TOPIC: "transaction-log"}  # of dump-log
FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
RECORD_OVERHEAD = 32  # bytes that a record takes at most besides its key and value

Apply = Callable[[], None]


class JournaledTopic(Protocol):
    """The broker's topic, as its journal needs it."""

    name: str

    def logs(self) -> Mapping[int, Log]:
        """Of its partitions; the same object while it is the same topic. Empty where there is none."""

    def make(self) -> None:
        """Make it where there is none. Raises KafkaError."""


@cached_by_name(10_000)
def java_hash(text: str) -> int:
    """Return Java's `String.hashCode()`.

    The hash is 0 for no text. Each UTF-16 unit turns it into 31 times the hash plus the unit, in 32 bits.
    """
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value if value < 2**31 else value - 2**32


class Pending:
    """Records in the queue: their place is theirs already, durable they are after `Journal.write`."""

    __slots__ = ("apply", "done", "failure", "marker", "partition", "producer", "records")

    def __init__(
        self,
        partition: _Partition,
        records: Sequence[KeyAndValue],
        apply: Apply | None,
        producer: ProducerIdAndEpoch | None,
        marker: EndTransactionMarker | None,
    ) -> None:
        self.partition, self.records, self.apply = partition, records, apply
        self.producer, self.marker = producer, marker
        self.done = False
        self.failure: KafkaError | None = None

    @property
    def size(self) -> int:
        """In bytes, at most."""
        return sum(len(key) + len(value or b"") + RECORD_OVERHEAD for key, value in self.records)


class State(Enum):
    LOADING = auto()
    ACTIVE = auto()
    FAILED = auto()  # it holds what cannot be read; nothing is served from a part of the truth


class _Partition:
    """One partition of the topic."""

    def __init__(self, log: Log, state: State) -> None:
        self.log, self.state = log, state
        self.queue: deque[Pending] = deque()
        self.turn = threading.Lock()  # held by who writes for all; taken before the log's locks, after a group's


class Journal:
    """The topic's partitions. Thread-safe."""

    def __init__(self, topic: JournaledTopic, *, sync: Callable[[], bool], clock: Callable[[], int] = now_ms) -> None:
        self._topic = topic
        self._sync = sync
        self._clock = clock
        self._lock = threading.Lock()  # guards the change from one topic to another
        self._take(topic.logs(), State.LOADING)

    # -- what belongs where

    def make_topic(self) -> None:
        """Make the topic where there is none. Raises KafkaError."""
        if not self._topic.logs():
            self._topic.make()

    def partition_for(self, id: str) -> int:
        """The number of the partition that a group, or a transactional id, belongs to.

        Raises NOT_COORDINATOR where there is no topic.
        """
        self._follow()
        if not self._partitions:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"there is no topic {self._topic.name} yet")
        value = java_hash(id)
        return 0 if value == -(2**31) else abs(value) % self._count  # whose absolute value is no 32-bit number

    def leader_epoch(self, id: str) -> int:
        """Of the partition: which coordinator of the id this is. Raises as `check_coordinates` does."""
        return self._partition(id).log.leader_epoch

    def check_coordinates(self, id: str) -> None:
        """Raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS."""
        self._partition(id)

    def _partition(self, id: str) -> _Partition:
        return self._active(self.partition_for(id))

    def _active(self, number: int) -> _Partition:
        partition = self._partitions.get(number)
        if partition is None or partition.state is State.FAILED:
            what = f"{self._topic.name}-{number} " + ("is not here" if partition is None else "cannot be read")
            raise KafkaError(ErrorCode.NOT_COORDINATOR, what)
        if partition.state is State.LOADING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self._topic.name}-{number} is being read")
        return partition

    def _follow(self) -> None:
        """The topic is another one than before: deleted, or made while the broker runs, and then there is nothing in
        it to load. The number of its partitions counts from now on, whatever is added later."""
        if (logs := self._topic.logs()) is self._logs:
            return
        with self._lock:
            if logs is not self._logs:
                self._take(logs, State.ACTIVE)

    def _take(self, logs: Mapping[int, Log], state: State) -> None:
        self._partitions = {number: _Partition(log, state) for number, log in logs.items()}
        self._count = max(logs, default=-1) + 1  # of those that the topic had when it was made
        self._logs = logs

    # -- write

    def enqueue(
        self,
        id: str,
        records: Sequence[KeyAndValue],
        apply: Apply | None = None,
        producer: ProducerIdAndEpoch | None = None,
    ) -> Pending:
        """Take the next place; with `producer` in its transaction. Raises as `check_coordinates` does."""
        return self._enqueue(Pending(self._partition(id), records, apply, producer, None))

    def enqueue_marker(
        self, number: int, marker: EndTransactionMarker, producer: ProducerIdAndEpoch, apply: Apply
    ) -> Pending:
        """Take the next place of a partition for the end of a transaction.

        Raises UNKNOWN_TOPIC_OR_PARTITION where it is gone, and as `check_coordinates` does.
        """
        self._follow()
        if number not in self._partitions:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no {self._topic.name}-{number}")
        return self._enqueue(Pending(self._active(number), (), apply, producer, marker))

    def _enqueue(self, pending: Pending) -> Pending:
        pending.partition.queue.append(pending)
        return pending

    def write(self, pending: Pending) -> None:
        """Return once it is durable.

        Raises NOT_COORDINATOR, UNKNOWN_SERVER_ERROR (too large), and within a transaction INVALID_PRODUCER_EPOCH,
        TRANSACTION_COORDINATOR_FENCED: nothing came of it.
        """
        if not pending.done:
            with pending.partition.turn:
                if not pending.done:
                    self._write_queued(pending.partition)
        if pending.failure is not None:
            raise KafkaError(pending.failure.code, pending.failure.message)

    def append(self, id: str, records: Sequence[KeyAndValue], apply: Apply | None = None) -> None:
        """Both in one."""
        self.write(self.enqueue(id, records, apply))

    def settle(self, id: str) -> None:
        """Return once nothing of a group is queued any more; under its lock, so that nothing can be added."""
        partition = self._partition(id)
        with partition.turn:
            self._write_queued(partition)

    def _write_queued(self, partition: _Partition) -> None:
        queue = partition.queue
        taken = [queue.popleft() for _ in range(len(queue))]
        try:
            self._write_all(partition.log, taken)
        finally:
            for pending in taken:
                if not pending.done:
                    pending.failure, pending.done = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "not written"), True

    def _write_all(self, log: Log, taken: Sequence[Pending]) -> None:
        written: list[Pending] = []
        for together in _batches(taken, log.config.max_message_bytes):
            failure = self._append(log, together)
            if failure is None:
                written += together
            for pending in together if failure else ():
                pending.failure, pending.done = failure, True
        failure = self._flush(log) if written and self._sync() else None
        for pending in written:
            if failure is None and pending.apply is not None:
                pending.apply()
            pending.failure, pending.done = failure, True

    def _append(self, log: Log, together: Sequence[Pending]) -> KafkaError | None:
        now, producer, marker = self._clock(), together[0].producer, together[0].marker
        records = [Record(timestamp=now, key=key, value=value) for each in together for key, value in each.records]
        try:
            if marker is not None and producer is not None:
                log.append_marker(marker, *producer)
            elif records and producer is not None:
                id, epoch = producer
                batch = encode_batch(records, producer_id=id, producer_epoch=epoch, transactional=True)
                log.append(memoryview(batch), own=True)
            elif records:
                log.append(memoryview(encode_batch(records)), own=True)
        except KafkaError as error:
            return self._as_coordinator(error)
        return None

    def _flush(self, log: Log) -> KafkaError | None:
        try:
            log.flush()
        except (KafkaError, OSError) as error:
            return self._as_coordinator(error)
        return None

    def _as_coordinator(self, error: KafkaError | OSError) -> KafkaError:
        """What a client is told; NOT_COORDINATOR makes it try again, which is right where a disk may be mended."""
        if isinstance(error, KafkaError) and error.code in FENCED:
            return error
        if isinstance(error, KafkaError) and error.code is ErrorCode.MESSAGE_TOO_LARGE:
            return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"too large to be written down: {error.message}")
        LOGGER.error("%s cannot be written: %s", self._topic.name, error)
        return KafkaError(ErrorCode.NOT_COORDINATOR, str(error))

    # -- load

    @property
    def is_complete(self) -> bool:
        """Whether the topic exists and all its partitions have been read."""
        partitions = self._partitions.values()
        return len(partitions) == self._count > 0 and all(each.state is State.ACTIVE for each in partitions)

    def load(self, replay: Replay, stop: threading.Event, keys: Keys = KEYS) -> None:
        """Read what the topic held at the start, partition by partition; to be run in a thread of its own.

        `replay` gets each key that is there once, with its newest value; and after it what stands in open transactions.
        """
        for number, partition in sorted(self._partitions.items()):
            if partition.state is not State.LOADING:
                continue
            try:
                for loaded in newest_records(partition.log, stop, keys):
                    if stop.is_set():
                        break
                    replay(*loaded)
                if stop.is_set():
                    return
                partition.state = State.ACTIVE
            except (KafkaError, ProtocolError, OSError) as error:
                if stop.is_set():  # then `replay` takes nothing more, which is no fault of what is read
                    return
                partition.state = State.FAILED
                LOGGER.error(
                    "%s-%d: %s; what is kept in it is not served. `hmb dump-log --%s-decoder %s` shows what that is",
                    *(self._topic.name, number, error, DECODERS[self._topic.name], partition.log.directory),
                )
            except Exception:  # a fault of ours is not the other partitions'
                partition.state = State.FAILED
                LOGGER.exception("%s-%d cannot be loaded; what it holds is not served", self._topic.name, number)


def _batches(taken: Sequence[Pending], limit: int) -> Iterator[list[Pending]]:
    """As many in one batch as the topic takes; what belongs together stays together, even where it is too large.

    What is written in a transaction is alone in its batch, which bears the producer's name.
    """
    together: list[Pending] = []
    room = limit - RECORD_BATCH_OVERHEAD
    for pending in taken:
        is_alone = pending.producer is not None or (together and together[0].producer is not None)
        if together and (is_alone or pending.size > room):
            yield together
            together, room = [], limit - RECORD_BATCH_OVERHEAD
        together.append(pending)
        room -= pending.size
    if together:
        yield together
