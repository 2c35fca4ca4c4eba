"""Writes the markers that end a transaction: one into each partition that contains records of the transaction.

A transaction can contain records of ordinary topics. The transaction coordinator appends the markers to the
logs of these topics itself (`Log.append_marker`). A transaction can also contain committed offsets in
`__consumer_offsets`.

Only the group coordinator writes to `__consumer_offsets`. The transaction coordinator therefore does not append
a marker to this topic itself. It adds the marker to the queue of the group coordinator's journal.

A COMMIT marker makes the offsets of the transaction visible, and an ABORT marker discards them.

The coordinator first appends all markers, and then syncs all logs. It completes the transaction only after the
last sync. If it completed the transaction earlier, a power failure could destroy a marker that is not synced
yet. Nobody would write this marker again, because the transaction would already be complete. If the coordinator
is not sure whether a marker was lost, it writes the marker again. A second marker does no harm.

For example, a transaction contains records of the partitions weather-0 and weather-1. At its end, the
coordinator first appends a marker to each partition's log, and then syncs both logs.

Source: KIP-98; Kafka's `TransactionMarkerChannelManager`, `KafkaApis.handleWriteTxnMarkersRequest`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from hmb.coordinator.groups import GroupCoordinator
from hmb.coordinator.transactions.hanging import OpenTransaction
from hmb.coordinator.transactions.transactional_id import VERSION_2
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import OFFSETS_TOPIC, TopicPartition
from hmb.records import EndTransactionMarker
from hmb.records.producer_numbers import ProducerIdAndEpoch
from hmb.storage.log import Log

LOGGER = logging.getLogger(__name__)
Finish = Callable[[], None]
FindLog = Callable[[TopicPartition], Log]  # raises UNKNOWN_TOPIC_OR_PARTITION if no log exists
AllLogs = Callable[[], Iterable[tuple[TopicPartition, Log]]]


class MarkerWriter:
    """Appends transaction markers to logs, and to the journal of the group coordinator. Thread-safe."""

    def __init__(
        self, find_log: FindLog, all_logs: AllLogs, groups: GroupCoordinator, must_sync: Callable[[], bool]
    ) -> None:
        self.groups = groups
        self._find_log = find_log
        self._all_logs = all_logs
        self._must_sync = must_sync

    def write(
        self, marker: EndTransactionMarker, producer: ProducerIdAndEpoch, partitions: Iterable[TopicPartition]
    ) -> None:
        """Append and sync a marker in each of `partitions`.

        If this method raises KafkaError, some markers can be missing.
        """
        begun: list[tuple[TopicPartition, Finish]] = []
        try:
            for partition in sorted(partitions):
                with _unless_over(partition, producer):
                    begun.append((partition, self._begin(marker, producer, partition)))
        finally:  # After an error in one partition, still sync the markers of all other partitions.
            for partition, finish in begun:
                with _unless_over(partition, producer):
                    finish()

    def open_transactions(self) -> Iterator[OpenTransaction]:
        """Yield all open transactions of all logs. A transaction that is open in two logs appears twice."""
        for partition, log in self._all_logs():
            for active in log.producers.active():
                if active.first_offset >= 0:
                    yield OpenTransaction(partition, active)

    def begin_one(
        self, marker: EndTransactionMarker, producer: ProducerIdAndEpoch, partition: TopicPartition, version: int
    ) -> Finish:
        """Append a marker to one partition. Return a function that the caller must call after the append.

        If `log.flush.acks.all` is true, the returned function waits until the marker is on disk. The method `begin_one`
        does not wait. So the caller can append many markers first, and wait for all of them later.

        Raises the errors of `_begin`. From transaction version 2 on, the method also raises INVALID_PRODUCER_EPOCH if
        the epoch of the marker is not greater than the epoch of the producer's open transaction.
        """
        if version >= VERSION_2:
            for _, state, first_offset in self._find_log(partition).producers.active(producer.producer_id):
                if first_offset >= 0 and state.epoch >= producer.epoch:
                    raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, f"a transaction of epoch {state.epoch} is open")
        return self._begin(marker, producer, partition)

    def _begin(self, marker: EndTransactionMarker, producer: ProducerIdAndEpoch, partition: TopicPartition) -> Finish:
        """Append the marker to one partition. Return a function that waits until the marker is durable.

        This method and the returned function raise UNKNOWN_TOPIC_OR_PARTITION, INVALID_PRODUCER_EPOCH,
        TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR, NOT_COORDINATOR.
        """
        if partition.topic == OFFSETS_TOPIC:
            return partial(
                self.groups.offsets.finish, self.groups.offsets.begin_marker(partition.partition, marker, producer)
            )
        log = self._find_log(partition)
        log.append_marker(marker, *producer)
        return log.flush if self._must_sync() else _is_written


def _is_written() -> None:
    pass


@contextmanager
def _unless_over(partition: TopicPartition, producer: ProducerIdAndEpoch) -> Iterator[None]:
    """Run a `with` block, and ignore two errors. After these errors, the partition needs no marker any more.

    UNKNOWN_TOPIC_OR_PARTITION means that the topic was deleted. INVALID_PRODUCER_EPOCH means that the transaction
    has already ended in this partition.
    """
    try:
        yield
    except KafkaError as error:
        if error.code is ErrorCode.INVALID_PRODUCER_EPOCH:
            LOGGER.info("%s needs no marker: the transaction of producer %d (epoch %d) has ended", partition, *producer)
        elif error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
