"""Ends hanging transactions: transactions that are open in a log, although the coordinator has already ended them.

A transaction is open in a log until the log contains the marker that ends the transaction. A consumer that reads only
committed records cannot read past the first open transaction of a log. It waits until the coordinator has written the
marker. If the disk later loses this marker, the transaction is open again. The coordinator does not write the marker
again, so the consumer waits forever.

At each start, the broker compares the open transactions of all logs with the state of the coordinator. For
each hanging transaction, the broker writes a new marker into the log:
- If the coordinator's state shows that the transaction was committed, the marker is COMMIT. The broker also
  compares the epochs in the log and in the state, to check that both belong to the same transaction
  (`_is_committed`).
- Otherwise, the broker does not know the result of the transaction, and writes ABORT. Consumers that read only
  committed records then skip the records of this transaction.

For example, producer 7 commits a transaction with epoch 3. The coordinator stores the state CompleteCommit and
epoch 3 for producer 7. Then a disk error destroys the COMMIT marker in the log of the partition weather-0, so
the transaction is open again in this log. At its next start, the broker finds epoch 3 in the log and in the
coordinator's state. The state is CompleteCommit, so the broker writes a new COMMIT marker into the log.

A lost COMMIT or ABORT marker rarely leaves a transaction hanging. When the broker starts, it first repairs its
logs and restores most lost markers (storage/recovery/repair.py). It then searches for hanging transactions.

Source: KIP-664, KIP-890 (hanging transactions).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from hmb.coordinator.transactions.states import TransactionState
from hmb.coordinator.transactions.transactional_id import Transaction
from hmb.protocol.topics import TopicPartition
from hmb.records import ControlType, EndTransactionMarker
from hmb.records.producer_numbers import ProducerIdAndEpoch
from hmb.storage.producer_state import ActiveProducer

LOGGER = logging.getLogger(__name__)


class OpenTransaction(NamedTuple):
    """A transaction that has no marker yet in the log of one partition."""

    partition: TopicPartition
    active: ActiveProducer

    @property
    def producer(self) -> ProducerIdAndEpoch:
        return ProducerIdAndEpoch(self.active.producer_id, self.active.producer.epoch)


def hanging(
    found: Iterable[OpenTransaction], known: Collection[Transaction]
) -> Iterator[tuple[OpenTransaction, EndTransactionMarker]]:
    """Yield pairs: a hanging transaction, and a new marker to end this transaction.

    A transaction hangs if it is open in a log, but not in the coordinator's state. `found` contains the open
    transactions in the logs. `known` contains the coordinator's state for each transactional id.
    """
    by_producer = {transaction.producer_id: transaction for transaction in known}
    for each in found:
        transaction = by_producer.get(each.active.producer_id)
        if transaction is not None and each.partition in transaction.partitions:
            continue
        outcome = ControlType.COMMIT if _is_committed(each, transaction) else ControlType.ABORT
        LOGGER.error(
            "%s: the transaction of producer %d that began at offset %d has ended, but its marker is lost. "
            "The broker writes a new marker: %s",
            each.partition, each.active.producer_id, each.active.first_offset, outcome.name,
        )  # fmt: skip
        yield each, EndTransactionMarker(outcome, max(0, each.active.producer.coordinator_epoch))


def _is_committed(found: OpenTransaction, transaction: Transaction | None) -> bool:
    """Return whether the coordinator has committed the transaction `found`, which is open in a log.

    `transaction` is the producer's last transaction in the coordinator's state. If it is None, or does not have the
    state CompleteCommit, the result is False. Otherwise, the epoch of `transaction` must equal the epoch of
    `found`, or be one higher.

    In transaction version 2, the coordinator adds 1 to the producer's epoch at the end of each transaction. For
    example, `found` has epoch 3, and `transaction` has epoch 4.
    """
    if transaction is None or transaction.state is not TransactionState.COMPLETE_COMMIT:
        return False
    return transaction.epoch - found.producer.epoch in (0, 1)
