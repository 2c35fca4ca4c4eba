"""The journals of the coordinators: `__consumer_offsets` for groups, `__transaction_state` for transactions.

A coordinator writes each change to its journal. A group belongs to one partition of the topic, by the hash of its id,
and so does a transactional id. The hash is Kafka's, so a data directory works with both brokers.

A disk syncs about a thousand times a second, and a committed offset is a record of some hundred bytes. Commits that
arrive at the same time therefore share one batch and one sync. This *group commit* has two calls:

    enqueue   adds records to the partition's queue. It does no I/O, so a caller can hold the lock of a group.
    write     waits for the partition's `turn` lock. The thread that gets it writes all queued records as one batch,
              syncs, and calls `apply` of each in the order of the queue. Other threads find their records done.

For example, three consumers commit while a sync is running. The first of their threads gets the lock next. It writes
the three commits as one batch with one sync, and the other two threads return without I/O.

The order of the queue, of the log and of the changes in memory is the same. Memory contains durable values only, so no
client receives an offset that a crash takes back. "Durable" is defined as for producers with acks=all, by the setting
`log.flush.acks.all`.

Records of a transaction have a batch of their own with the producer's id and epoch. The marker that ends the
transaction passes through the same queue. It therefore follows all records of its transaction.

The records are described in group_records.py and transactions/records.py, the reading at the start in
journal_loading.py.

Invariant: when a thread releases the `turn` lock, every `Pending` that it took from the queue is done.

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
DECODERS = {OFFSETS_TOPIC: "offsets", TRANSACTIONS_TOPIC: "transaction-log"}  # by topic: the decoder of `hmb dump-log`
FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
RECORD_OVERHEAD = 32  # bytes, the maximum of a record without its key and value

Apply = Callable[[], None]


class JournaledTopic(Protocol):
    """The topic of a journal."""

    name: str

    def logs(self) -> Mapping[int, Log]:
        """Return the logs by partition number: the same object for the same topic, empty if it does not exist."""

    def make(self) -> None:
        """Create the topic if it does not exist. Raises KafkaError."""


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
    """Records in the queue of a partition. They are durable after `Journal.write`."""

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
        """The maximum size in bytes."""
        return sum(len(key) + len(value or b"") + RECORD_OVERHEAD for key, value in self.records)


class LoadingState(Enum):
    """The state of a journal's partition."""

    LOADING = auto()
    ACTIVE = auto()
    FAILED = auto()  # A record cannot be read, so the coordinator serves nothing from this partition.


class _Partition:
    """One partition of the journal's topic."""

    def __init__(self, log: Log, state: LoadingState) -> None:
        self.log, self.state = log, state
        self.queue: deque[Pending] = deque()
        # The holder of `turn` writes for all. A thread takes it after a group's lock and before the log's locks.
        self.turn = threading.Lock()


class Journal:
    """The journal of one coordinator. Thread-safe."""

    def __init__(self, topic: JournaledTopic, *, sync: Callable[[], bool], clock: Callable[[], int] = now_ms) -> None:
        self._topic = topic
        self._sync = sync
        self._clock = clock
        self._lock = threading.Lock()  # guards the replacement of the topic
        self._take(topic.logs(), LoadingState.LOADING)

    # -- partitions

    def make_topic(self) -> None:
        """Create the topic if it does not exist. Raises KafkaError."""
        if not self._topic.logs():
            self._topic.make()

    def partition_for(self, id: str) -> int:
        """Return the number of the partition to which a group or a transactional id belongs.

        Raises NOT_COORDINATOR if the topic does not exist.
        """
        self._follow()
        if not self._partitions:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"topic {self._topic.name} does not exist yet")
        value = java_hash(id)
        return 0 if value == -(2**31) else abs(value) % self._count  # This hash has no absolute value in 32 bits.

    def leader_epoch(self, id: str) -> int:
        """Return the leader epoch of the partition of an id. Raises as `check_coordinates` does."""
        return self._partition(id).log.leader_epoch

    def check_coordinates(self, id: str) -> None:
        """Raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS."""
        self._partition(id)

    def _partition(self, id: str) -> _Partition:
        return self._active(self.partition_for(id))

    def _active(self, number: int) -> _Partition:
        partition = self._partitions.get(number)
        if partition is None or partition.state is LoadingState.FAILED:
            what = f"{self._topic.name}-{number} " + ("is not here" if partition is None else "cannot be read")
            raise KafkaError(ErrorCode.NOT_COORDINATOR, what)
        if partition.state is LoadingState.LOADING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self._topic.name}-{number} is being read")
        return partition

    def _follow(self) -> None:
        """Use the current topic if it was deleted or created since the last call.

        A new topic has nothing to load. Its number of partitions stays fixed, even if partitions are added later.
        """
        if (logs := self._topic.logs()) is self._logs:
            return
        with self._lock:
            if logs is not self._logs:
                self._take(logs, LoadingState.ACTIVE)

    def _take(self, logs: Mapping[int, Log], state: LoadingState) -> None:
        self._partitions = {number: _Partition(log, state) for number, log in logs.items()}
        self._count = max(logs, default=-1) + 1  # the number of partitions at the creation of the topic
        self._logs = logs

    # -- write

    def enqueue(
        self,
        id: str,
        records: Sequence[KeyAndValue],
        apply: Apply | None = None,
        producer: ProducerIdAndEpoch | None = None,
    ) -> Pending:
        """Add records to the queue, with `producer` as part of its transaction. Raises as `check_coordinates` does."""
        return self._enqueue(Pending(self._partition(id), records, apply, producer, None))

    def enqueue_marker(
        self, number: int, marker: EndTransactionMarker, producer: ProducerIdAndEpoch, apply: Apply
    ) -> Pending:
        """Add the end of a transaction to the queue of a partition.

        Raises UNKNOWN_TOPIC_OR_PARTITION if the partition does not exist, and as `check_coordinates` does.
        """
        self._follow()
        if number not in self._partitions:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{self._topic.name}-{number} does not exist")
        return self._enqueue(Pending(self._active(number), (), apply, producer, marker))

    def _enqueue(self, pending: Pending) -> Pending:
        pending.partition.queue.append(pending)
        return pending

    def write(self, pending: Pending) -> None:
        """Return after the records are durable.

        Raises NOT_COORDINATOR, UNKNOWN_SERVER_ERROR (too large), and within a transaction INVALID_PRODUCER_EPOCH,
        TRANSACTION_COORDINATOR_FENCED. The records are then not stored.
        """
        if not pending.done:
            with pending.partition.turn:
                if not pending.done:
                    self._write_queued(pending.partition)
        if pending.failure is not None:
            raise KafkaError(pending.failure.code, pending.failure.message)

    def append(self, id: str, records: Sequence[KeyAndValue], apply: Apply | None = None) -> None:
        """Enqueue and write records."""
        self.write(self.enqueue(id, records, apply))

    def settle(self, id: str) -> None:
        """Write everything that is queued for a group. The caller holds the group's lock, so nothing can be added."""
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
        """Return the error for the client. NOT_COORDINATOR makes it retry, because the disk may be repaired."""
        if isinstance(error, KafkaError) and error.code in FENCED:
            return error
        if isinstance(error, KafkaError) and error.code is ErrorCode.MESSAGE_TOO_LARGE:
            return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"too large for the journal: {error.message}")
        LOGGER.error("%s cannot be written: %s", self._topic.name, error)
        return KafkaError(ErrorCode.NOT_COORDINATOR, str(error))

    # -- load

    @property
    def is_complete(self) -> bool:
        """Whether the topic exists and all its partitions have been read."""
        partitions = self._partitions.values()
        return len(partitions) == self._count > 0 and all(each.state is LoadingState.ACTIVE for each in partitions)

    def load(self, replay: Replay, stop: threading.Event, keys: Keys = KEYS) -> None:
        """Read the partitions that existed at the start, one after the other. A thread of its own calls this method.

        `replay` receives each key once with its newest value, and afterwards the records of open transactions.
        """
        for number, partition in sorted(self._partitions.items()):
            if partition.state is not LoadingState.LOADING:
                continue
            try:
                for loaded in newest_records(partition.log, stop, keys):
                    if stop.is_set():
                        break
                    replay(*loaded)
                if stop.is_set():
                    return
                partition.state = LoadingState.ACTIVE
            except (KafkaError, ProtocolError, OSError) as error:
                if stop.is_set():  # The coordinator stops, so the error says nothing about the data.
                    return
                partition.state = LoadingState.FAILED
                LOGGER.error(
                    "%s-%d: %s; its state is not served. `hmb dump-log --%s-decoder %s` shows the records",
                    *(self._topic.name, number, error, DECODERS[self._topic.name], partition.log.directory),
                )
            except Exception:  # An internal error must not stop the other partitions.
                partition.state = LoadingState.FAILED
                LOGGER.exception("%s-%d cannot be loaded; its state is not served", self._topic.name, number)


def _batches(taken: Sequence[Pending], limit: int) -> Iterator[list[Pending]]:
    """Divide the queue into batches of at most `limit` bytes. The records of one `Pending` stay together.

    Records of a transaction have a batch of their own, which contains the producer's id and epoch.
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
