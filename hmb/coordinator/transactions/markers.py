"""Writing the markers that end a transaction: one in every partition that has records of it.

The partitions of other topics get them by `Log.append_marker`. Those of `__consumer_offsets` belong to the group
coordinator, whose journal puts the marker in its order and lets the offsets of the transaction count, or forgets them.

A marker is written before it is synced, and all are synced before the transaction may be called complete: else a power
cut could leave one of them out, and nobody would write it again. To write one twice does no harm.

Source: KIP-98; Kafka's `TransactionMarkerChannelManager`, `KafkaApis.handleWriteTxnMarkersRequest`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from hmb.coordinator.groups import GroupCoordinator
from hmb.coordinator.producer_ids import ProducerIdAndEpoch
from hmb.coordinator.transactions.hanging import OpenTransaction
from hmb.coordinator.transactions.transactional_id import VERSION_2
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import OFFSETS_TOPIC, TopicPartition
from hmb.records import EndTransactionMarker
from hmb.storage.log import Log

LOGGER = logging.getLogger(__name__)
Finish = Callable[[], None]
FindLog = Callable[[TopicPartition], Log]  # raises UNKNOWN_TOPIC_OR_PARTITION
AllLogs = Callable[[], Iterable[tuple[TopicPartition, Log]]]


class MarkerWriter:
    """Of one broker. Thread-safe."""

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
        """End the transaction in all of these, durably. Raises KafkaError, and then some of them may have theirs."""
        begun: list[tuple[TopicPartition, Finish]] = []
        try:
            for partition in sorted(partitions):
                with _unless_over(partition, producer):
                    begun.append((partition, self._begin(marker, producer, partition)))
        finally:  # what has its place is written, also if another partition cannot take its marker
            for partition, finish in begun:
                with _unless_over(partition, producer):
                    finish()

    def open_transactions(self) -> Iterator[OpenTransaction]:
        """Return the transactions that are open in any log."""
        for partition, log in self._all_logs():
            for active in log.active_producers():
                if active.first_offset >= 0:
                    yield OpenTransaction(partition, active)

    def begin_one(
        self, marker: EndTransactionMarker, producer: ProducerIdAndEpoch, partition: TopicPartition, version: int
    ) -> Finish:
        """Write the marker of one partition, by the rules of a transaction version.

        Returns a function that waits until the marker is durable, so that many markers share a sync. Raises as
        `_begin` does.
        """
        if version >= VERSION_2:
            for _, state, first_offset in self._find_log(partition).active_producers(producer.producer_id):
                if first_offset >= 0 and state.epoch >= producer.epoch:
                    raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, f"epoch {state.epoch} is still open")
        return self._begin(marker, producer, partition)

    def _begin(self, marker: EndTransactionMarker, producer: ProducerIdAndEpoch, partition: TopicPartition) -> Finish:
        """Write the marker of one partition; the function that it returns waits until the marker is durable.

        Both raise UNKNOWN_TOPIC_OR_PARTITION, INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED,
        KAFKA_STORAGE_ERROR, NOT_COORDINATOR.
        """
        if partition.topic == OFFSETS_TOPIC:
            return partial(self.groups.finish, self.groups.begin_end(partition.partition, marker, producer))
        log = self._find_log(partition)
        log.append_marker(marker, *producer)
        return log.flush if self._sync() else _is_written


def _is_written() -> None:
    pass


@contextmanager
def _unless_over(partition: TopicPartition, producer: ProducerIdAndEpoch) -> Iterator[None]:
    """Go on where a partition needs no marker: a newer epoch has ended its transaction, or its topic was deleted."""
    try:
        yield
    except KafkaError as error:
        if error.code is ErrorCode.INVALID_PRODUCER_EPOCH:
            LOGGER.info("%s needs no marker of producer %d, epoch %d any more", partition, *producer)
        elif error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
