"""Writing the markers that end a transaction: one in every partition that has records of it.

The partitions of other topics get them by `Log.append_marker`.  Those of `__consumer_offsets` belong to the group
coordinator, whose journal puts the marker in its order and lets the offsets of the transaction count, or forgets them.

A marker is written before it is synced, and all are synced before the transaction may be called complete: else a power
cut could leave one of them out, and nobody would write it again.  To write one twice does no harm.

Source: KIP-98; Kafka's `TransactionMarkerChannelManager`, `KafkaApis.handleWriteTxnMarkersRequest`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator

from hmb.coordinator.groups import GroupCoordinator
from hmb.coordinator.producer_ids import ProducerIdAndEpoch
from hmb.coordinator.transactions.hanging import OpenTransaction
from hmb.coordinator.transactions.transactional_id import VERSION_2
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import OFFSETS_TOPIC, TopicPartition
from hmb.records import EndTransactionMarker
from hmb.storage.log import Log

LOGGER = logging.getLogger(__name__)
FindLog = Callable[[TopicPartition], Log]  # raises UNKNOWN_TOPIC_OR_PARTITION
AllLogs = Callable[[], Iterable[tuple[TopicPartition, Log]]]


class MarkerWriter:
    """Of one broker.  Thread-safe."""

    def __init__(
        self, find_log: FindLog, all_logs: AllLogs, groups: GroupCoordinator, sync: Callable[[], bool]
    ) -> None:
        self.groups = groups
        self._find_log = find_log
        self._all_logs = all_logs
        self._sync = sync

    def write(
        self, marker: EndTransactionMarker, producer: ProducerIdAndEpoch, partitions: Iterable[TopicPartition]
    ) -> None:
        """End the transaction in all of these, durably.  Raises KafkaError, and then some of them may have theirs."""
        written = [self._append_if_wanted(marker, producer, partition) for partition in sorted(partitions)]
        if self._sync():
            for log in written:
                if log is not None:
                    log.flush()

    def _append_if_wanted(
        self, marker: EndTransactionMarker, producer: ProducerIdAndEpoch, partition: TopicPartition
    ) -> Log | None:
        try:
            return self._append(marker, producer, partition)
        except KafkaError as error:
            if error.code is ErrorCode.INVALID_PRODUCER_EPOCH:  # a newer epoch has ended it there
                LOGGER.info("%s needs no marker of producer %d, epoch %d any more", partition, *producer)
                return None
            if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:  # deleted meanwhile
                return None
            raise

    def open_transactions(self) -> Iterator[OpenTransaction]:
        """Return the transactions that are open in any log."""
        for partition, log in self._all_logs():
            for active in log.active_producers():
                if active.first_offset >= 0:
                    yield OpenTransaction(partition, active)

    def write_one(
        self, marker: EndTransactionMarker, producer: ProducerIdAndEpoch, partition: TopicPartition, version: int
    ) -> None:
        """End it in one partition, durably, by the rules of a transaction version.  Raises as `_append` does."""
        if version >= VERSION_2:
            for _, state, first_offset in self._find_log(partition).active_producers(producer.producer_id):
                if first_offset >= 0 and state.epoch >= producer.epoch:
                    raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, f"epoch {state.epoch} is still open")
        log = self._append(marker, producer, partition)
        if log is not None and self._sync():
            log.flush()

    def _append(
        self, marker: EndTransactionMarker, producer: ProducerIdAndEpoch, partition: TopicPartition
    ) -> Log | None:
        """Give a partition its marker; the log where it has yet to be synced.

        Raises UNKNOWN_TOPIC_OR_PARTITION, INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR,
        NOT_COORDINATOR.
        """
        if partition.topic == OFFSETS_TOPIC:
            self.groups.end_transaction(partition.partition, marker, producer)
            return None
        log = self._find_log(partition)
        log.append_marker(marker, *producer)
        return log
