"""The journal of one coordinator: it writes the coordinator's changes to disk, and reads them after a restart.

Each partition of a journal has a queue and a log. (`hmb/coordinator/journal/__init__.py` explains the queue.)
Records go from the queue to the log in the same order. The coordinator changes its state in memory only after
the records of a change are durable. It makes these changes in the order of the log. A crash of the broker
therefore cannot undo a committed offset that a client has already received.

The setting `log.flush.acks.all` decides when the records of a journal are *durable*. If the setting is true, they are
durable when they are on disk. Otherwise they are durable when they are in the log. The same rule applies to the records
that a producer sends to a topic with acks=all.

A batch contains the id and epoch of only one producer. The journal therefore never writes records of a
transaction and other records in one batch.

A marker (commit or abort) ends a transaction. The coordinator adds the marker to the same queue as the
records of the transaction. The marker therefore comes after these records in the log.

Source: Kafka's `CoordinatorRuntime`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence

from hmb.coordinator.journal.loading import ReadRecords, Replay, newest_records
from hmb.coordinator.journal.partition import Apply, JournalPartition, LoadingState, QueuedRecords
from hmb.coordinator.journal.records import KEYS, KeyAndValue, Keys
from hmb.coordinator.journal.topic import JournaledTopic, JournalPartitions
from hmb.protocol.errors import ErrorCode, KafkaError, ProtocolError
from hmb.protocol.topics import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from hmb.records import RECORD_BATCH_OVERHEAD, EndTransactionMarker, Record, RecordBatch, encode_batch
from hmb.records.producer_numbers import ProducerIdAndEpoch
from hmb.storage.log import Log
from hmb.units import now_ms

LOGGER = logging.getLogger(__name__)
DECODERS = {  # topic -> decoder of `hmb dump-log`
    OFFSETS_TOPIC: "offsets",
    TRANSACTIONS_TOPIC: "transaction-log",
    SHARE_STATE_TOPIC: "share-group-state",
}
FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)


class Journal:
    """The journal of one coordinator. Thread-safe.

    Each partition of the journal has a queue and a log. `enqueue` adds an entry with records to a queue. `write`
    moves entries to the log.

    - The records in the log are in the same order as in the queue.
    - The journal calls the function `apply` of an entry only after the entry's records are durable.
    - Only a thread that holds the partition's `write_lock` takes entries from the queue. Before the thread releases
      the lock, it sets the field `done` of these entries to True.
    """

    def __init__(
        self, topic: JournaledTopic, *, must_sync: Callable[[], bool], clock: Callable[[], int] = now_ms
    ) -> None:
        """Create the journal in the topic `topic`.

        `must_sync` returns whether each write must be synced to disk. `clock` returns the time in ms since 1970.
        """
        self._name = topic.name
        self._partitions = JournalPartitions(topic)
        self._must_sync = must_sync
        self._clock = clock

    # -- partitions

    def make_topic(self) -> None:
        """Create the topic if it does not exist. Raises KafkaError."""
        self._partitions.make_topic()

    def partition_for(self, id: str) -> int:
        """Return the number of the partition to which a group id or a transactional id belongs.

        Raises NOT_COORDINATOR if the topic does not exist.
        """
        return self._partitions.number_for(id)

    def leader_epoch(self, id: str) -> int:
        """Return the leader epoch of the journal partition of `id`. Raises the errors of `check_coordinates`."""
        return self._partition(id).log.leader_epoch

    def log_end_offset(self, number: int) -> int:
        """Return the log end offset of the journal's partition `number`. Raises the errors of `enqueue_marker`."""
        return self._partitions.existing(number).log.log_end_offset

    def check_coordinates(self, id: str) -> None:
        """Check that the broker coordinates `id` (for example, a group id): the journal partition of `id` is loaded.

        Raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.
        """
        self._partition(id)

    @property
    def is_complete(self) -> bool:
        """Whether the topic exists and the coordinator has loaded all its partitions."""
        return self._partitions.is_complete

    def _partition(self, id: str) -> JournalPartition:
        return self._partitions.active(self._partitions.number_for(id))

    def largest_batch(self, id: str) -> int:
        """Return the maximum size of a batch, in bytes, in one partition of the journal.

        `id` selects the partition: it is, for example, a group id. Raises the errors of `check_coordinates`.
        """
        return self._partition(id).log.config.max_message_bytes

    # -- write

    def enqueue(
        self,
        id: str,
        records: Sequence[KeyAndValue],
        apply: Apply | None = None,
        producer: ProducerIdAndEpoch | None = None,
    ) -> QueuedRecords:
        """Add records to the queue of one partition of the journal.

        The text `id`, for example a group id, selects the partition. If the records belong to a transaction, `producer`
        is the producer of the transaction; otherwise it is None. Raises the errors of `check_coordinates`.
        """
        return self._enqueue(QueuedRecords(self._partition(id), records, apply, producer, None))

    def enqueue_marker(
        self, number: int, marker: EndTransactionMarker, producer: ProducerIdAndEpoch, apply: Apply
    ) -> QueuedRecords:
        """Add a transaction marker to the queue of partition `number` of the journal.

        Raises UNKNOWN_TOPIC_OR_PARTITION if the partition does not exist, and the errors of `check_coordinates`.
        """
        return self._enqueue(QueuedRecords(self._partitions.existing(number), (), apply, producer, marker))

    def _enqueue(self, queued: QueuedRecords) -> QueuedRecords:
        queued.partition.queue.append(queued)
        return queued

    def write(self, queued: QueuedRecords) -> None:
        """Wait until the records of `queued` are durable: in the log, and on disk if each write must be synced.

        If the write fails, the method raises an error, and the journal does not call `queued.apply`:

        - NOT_COORDINATOR: the log cannot be written, for example because the disk has failed.
        - UNKNOWN_SERVER_ERROR: the records are too large, or an unexpected error has occurred.
        - INVALID_PRODUCER_EPOCH: the log has already seen a newer epoch of the transaction's producer.
        - TRANSACTION_COORDINATOR_FENCED: the log has already seen a marker with a newer coordinator epoch.
        """
        if not queued.done:
            with queued.partition.write_lock:
                if not queued.done:
                    self._write_queued(queued.partition)
        if queued.failure is not None:
            raise KafkaError(queued.failure.code, queued.failure.message)

    def append(self, id: str, records: Sequence[KeyAndValue], apply: Apply | None = None) -> None:
        """Add records to the journal's queue, and wait until they are durable."""
        self.write(self.enqueue(id, records, apply))

    def write_all_queued(self, id: str) -> None:
        """Write all queued records of the partition to which the group `id` belongs.

        The caller must hold the lock of this group. While the caller holds the lock, no other thread can add records of
        the group to the queue.
        """
        partition = self._partition(id)
        with partition.write_lock:
            self._write_queued(partition)

    def _write_queued(self, partition: JournalPartition) -> None:
        queue = partition.queue
        taken = [queue.popleft() for _ in range(len(queue))]
        try:
            self._write_all(partition.log, taken)
        finally:
            for queued in taken:
                if not queued.done:
                    why = "the coordinator could not write its journal; the broker's log has the reason"
                    queued.failure, queued.done = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, why), True

    def _write_all(self, log: Log, taken: Sequence[QueuedRecords]) -> None:
        written: list[QueuedRecords] = []
        for together in _batches(taken, log.config.max_message_bytes):
            failure = self._append(log, together)
            if failure is None:
                written += together
            for queued in together if failure else ():
                queued.failure, queued.done = failure, True
        failure = self._flush(log) if written and self._must_sync() else None
        for queued in written:
            if failure is None and queued.apply is not None:
                queued.apply()
            queued.failure, queued.done = failure, True

    def _append(self, log: Log, together: Sequence[QueuedRecords]) -> KafkaError | None:
        now, producer, marker = self._clock(), together[0].producer, together[0].marker
        records = [Record(timestamp=now, key=key, value=value) for each in together for key, value in each.records]
        try:
            if marker is not None and producer is not None:
                log.append_marker(marker, *producer)
            elif records and producer is not None:
                id, epoch = producer
                batch = encode_batch(records, producer_id=id, producer_epoch=epoch, transactional=True)
                log.append_from_coordinator(RecordBatch.parse(batch))
            elif records:
                log.append_from_coordinator(RecordBatch.parse(encode_batch(records)))
        except KafkaError as error:
            return self._coordinator_error(error)
        return None

    def _flush(self, log: Log) -> KafkaError | None:
        try:
            log.flush()
        except (KafkaError, OSError) as error:
            return self._coordinator_error(error)
        return None

    def _coordinator_error(self, error: KafkaError | OSError) -> KafkaError:
        """Return the error for the client after a write to the log has raised `error`.

        If the log cannot be written, for example because the disk has failed, the result is NOT_COORDINATOR. After this
        error, the client sends its request again.
        """
        if isinstance(error, KafkaError) and error.code in FENCED:
            return error
        if isinstance(error, KafkaError) and error.code is ErrorCode.MESSAGE_TOO_LARGE:
            return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"too large for the journal: {error.message}")
        LOGGER.error("%s cannot be written: %s", self._name, error)
        return KafkaError(ErrorCode.NOT_COORDINATOR, str(error))

    # -- load

    def load(
        self, replay: Replay, stop: threading.Event, keys: Keys = KEYS, read: ReadRecords = newest_records
    ) -> None:
        """Load all partitions that existed when the broker started, one partition after the other.

        For each partition, the method passes each record from `read` to `replay`. The default for `read` is
        `newest_records`, which yields the newest record of each key, and then the records of open transactions.

        If a partition cannot be loaded, the method logs the error and continues with the next partition. The method
        returns early if another thread sets `stop`.
        """
        for number, partition in self._partitions:
            if partition.state is not LoadingState.LOADING:
                continue
            try:
                for loaded in read(partition.log, stop, keys):
                    if stop.is_set():
                        break
                    replay(*loaded)
                if stop.is_set():
                    return
                partition.state = LoadingState.ACTIVE
            except (KafkaError, ProtocolError, OSError) as error:
                if stop.is_set():  # The broker is stopping, so the error does not mean that data is damaged.
                    return
                partition.state = LoadingState.FAILED
                LOGGER.error(
                    "%s-%d: %s; requests for this partition fail. `hmb dump-log --%s-decoder %s` shows the records",
                    *(self._name, number, error, DECODERS[self._name], partition.log.directory),
                )
            except Exception:  # An internal error in one partition must not stop the others.
                partition.state = LoadingState.FAILED
                LOGGER.exception("%s-%d cannot be loaded; requests for this partition fail", self._name, number)


def _batches(taken: Sequence[QueuedRecords], limit: int) -> Iterator[list[QueuedRecords]]:
    """Divide the entries of the journal's queue into batches of at most `limit` bytes.

    An entry is never divided. If a single entry is larger than `limit`, its batch is also larger.

    Each entry of a transaction gets a separate batch, because a batch contains the id and epoch of only one
    producer.
    """
    together: list[QueuedRecords] = []
    room = limit - RECORD_BATCH_OVERHEAD
    for queued in taken:
        is_alone = queued.producer is not None or (together and together[0].producer is not None)
        if together and (is_alone or queued.size > room):
            yield together
            together, room = [], limit - RECORD_BATCH_OVERHEAD
        together.append(queued)
        room -= queued.size
    if together:
        yield together
