"""Hanging transactions: a log contains an open transaction that the coordinator has already ended.

A read_committed consumer waits at the first open transaction of a log, until the coordinator writes the marker that
ends it. If the disk then loses the marker, the coordinator writes no second one, and the consumer waits forever. The
start of a broker therefore compares the open transactions of all logs with the transactions of the coordinator. It ends
each open transaction that is not open for the coordinator:

- A COMMIT marker ends it if the last transaction of the producer was committed and the epochs match.
- An ABORT marker ends every other one. Its result is unknown, so its records are not returned to consumers.

For example, producer 7 with epoch 3 has an open transaction in weather-0. The coordinator has the state CompleteCommit
and epoch 3 for producer 7, so the start writes a COMMIT marker.

The recovery of a log repairs most lost markers earlier, so hanging transactions are rare.

Source: KIP-664, KIP-890 (hanging transactions).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from hmb.coordinator.producer_ids import ProducerIdAndEpoch
from hmb.coordinator.transactions.states import TransactionState
from hmb.coordinator.transactions.transactional_id import Transaction
from hmb.protocol.topics import TopicPartition
from hmb.records import ControlType, EndTransactionMarker
from hmb.storage.producer_state import ActiveProducer

LOGGER = logging.getLogger(__name__)


class OpenTransaction(NamedTuple):
    """A transaction that is open in one partition."""

    partition: TopicPartition
    active: ActiveProducer

    @property
    def producer(self) -> ProducerIdAndEpoch:
        return ProducerIdAndEpoch(self.active.producer_id, self.active.producer.epoch)


def hanging(
    found: Iterable[OpenTransaction], known: Collection[Transaction]
) -> Iterator[tuple[OpenTransaction, EndTransactionMarker]]:
    """Return the open transactions that the coordinator does not know, each with the marker that should end it."""
    by_producer = {transaction.producer_id: transaction for transaction in known}
    for each in found:
        transaction = by_producer.get(each.active.producer_id)
        if transaction is not None and each.partition in transaction.partitions:
            continue
        outcome = ControlType.COMMIT if _is_committed(each, transaction) else ControlType.ABORT
        LOGGER.error(
            "%s: the transaction of producer %d from offset %d on has ended, but its marker is lost; %s ends it again",
            each.partition, each.active.producer_id, each.active.first_offset, outcome.name,
        )  # fmt: skip
        yield each, EndTransactionMarker(outcome, max(0, each.active.producer.coordinator_epoch))


def _is_committed(found: OpenTransaction, transaction: Transaction | None) -> bool:
    """Return whether `found` is the last transaction of the producer, and that transaction was committed.

    With transaction version 2 the end of a transaction raises the epoch by one.
    """
    if transaction is None or transaction.state is not TransactionState.COMPLETE_COMMIT:
        return False
    return transaction.epoch - found.producer.epoch in (0, 1)
