"""Hanging transactions: open in a log, and over for the coordinator.

Readers of committed records wait at the first open transaction of a log. Its coordinator writes the marker that ends
it. If the disk loses the marker after that, nobody writes another one, and the readers wait for ever. So a start
compares the open transactions of all logs with what the coordinator knows, and ends those that it does not know:

- as the coordinator has ended the last transaction of the producer, if the epochs fit;
- with an abort otherwise. Nobody can say that such a transaction was committed, so its records are not served.

A start repairs a lost marker itself where it can (storage/repair.py). What is left for this module is rare.

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
            "%s: the transaction of producer %d from offset %d on is over, and its marker is lost; it is ended by %s",
            each.partition, each.active.producer_id, each.active.first_offset, outcome.name,
        )  # fmt: skip
        yield each, EndTransactionMarker(outcome, max(0, each.active.producer.coordinator_epoch))


def _is_committed(found: OpenTransaction, transaction: Transaction | None) -> bool:
    """Return whether the last transaction of the producer was committed, and this is that one.

    With transaction version 2 the end of a transaction raises the epoch by one.
    """
    if transaction is None or transaction.state is not TransactionState.COMPLETE_COMMIT:
        return False
    return transaction.epoch - found.producer.epoch in (0, 1)
