"""The states of a transactional id, and the table of its transitions.

A transaction ends in two steps, as in a two-phase commit. First, the coordinator writes PrepareCommit or PrepareAbort
to the journal. From then on, the outcome of the transaction cannot change any more. Then the coordinator writes a
marker to each partition with records of the transaction. The markers only announce the outcome. After the last marker,
the coordinator writes CompleteCommit or CompleteAbort to the journal. If the broker crashes before this, it writes all
markers again after its restart.

The next table shows how the coordinator answers three requests of a producer. The left column is the state of
the transactional id. The names in capital letters are errors. `Prepare...` is PrepareCommit or PrepareAbort,
and `Complete...` is CompleteCommit or CompleteAbort:
    state            AddPartitionsToTxn        EndTxn                       InitProducerId
    Empty            starts a transaction      INVALID_TXN_STATE            returns a new epoch
    Ongoing          adds partitions           commits or aborts            aborts the transaction (1)
    Prepare...       CONCURRENT_TRANSACTIONS   CONCURRENT_TRANSACTIONS (2)  CONCURRENT_TRANSACTIONS
    Complete...      starts a transaction      succeeds again (2)           returns a new epoch
    (1) The response contains the error CONCURRENT_TRANSACTIONS and no epoch. The producer must send the request
        again.
    (2) The producer repeats EndTxn if it has not received the response. The repeated request must contain the
        same decision. For example, a commit in PrepareAbort or CompleteAbort gets INVALID_TXN_STATE.
    In transaction version 2 (KIP-890), the first record starts a transaction. After an error, the producer does
    not know whether the broker has received this record, so the producer sends an abort. The coordinator accepts
    the abort even if no transaction is open.

The coordinator itself aborts an open transaction in two cases: a producer with the same transactional id sends
InitProducerId, or the transaction exceeds its timeout. The first case usually means that a newer producer has
started. The old producer may still send requests. So the coordinator first increases the epoch, in the state
PrepareEpochFence. The broker then rejects the requests of the old producer, because they contain the old epoch.
Only after that does the coordinator abort the transaction.

For example, a producer commits one transaction and aborts the next. The states of its transactional id are Empty,
Ongoing, PrepareCommit, CompleteCommit, Ongoing, PrepareAbort, CompleteAbort.

`Transaction` looks up the next state of a transactional id in the table `TRANSITIONS`. The picture of the states in the
documentation is drawn from the same table.

Source: KIP-98, KIP-890; Kafka's `TransactionState`.
"""

from __future__ import annotations

from enum import Enum

from hmb.protocol.enums import LabeledEnum
from hmb.state_table import StateTable


class TransactionState(LabeledEnum):
    """A state of a transactional id. In the journal, a state is stored as a number.

    The responses to DescribeTransactions and ListTransactions contain the name of the state instead, for example
    "Ongoing" (`label`).
    """

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


class TransactionEvent(Enum):
    """An event that changes the state of a transactional id."""

    INITIALIZED = "a producer requests its producer id and epoch"
    PARTITION_ADDED = "the producer adds a partition"
    COMMIT = "the producer commits"
    ABORT = "the producer aborts"
    FENCED = "the timeout has passed, or a newer producer starts"
    EPOCH_RAISED = "the older producer is fenced"
    MARKERS_WRITTEN = "all markers are written"
    EXPIRED = "no producer has used the transactional id for a long time"


BETWEEN_TRANSACTIONS = (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
PREPARED = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

_S, _E = TransactionState, TransactionEvent
TRANSITIONS = StateTable(
    *((before, _E.INITIALIZED, _S.EMPTY) for before in BETWEEN_TRANSACTIONS),
    *((before, _E.PARTITION_ADDED, _S.ONGOING) for before in BETWEEN_TRANSACTIONS),
    (_S.ONGOING, _E.PARTITION_ADDED, _S.ONGOING),
    (_S.ONGOING, _E.COMMIT, _S.PREPARE_COMMIT),
    (_S.ONGOING, _E.ABORT, _S.PREPARE_ABORT),
    *((before, _E.ABORT, _S.PREPARE_ABORT) for before in BETWEEN_TRANSACTIONS),
    (_S.ONGOING, _E.FENCED, _S.PREPARE_EPOCH_FENCE),
    (_S.PREPARE_EPOCH_FENCE, _E.EPOCH_RAISED, _S.PREPARE_ABORT),
    (_S.PREPARE_COMMIT, _E.MARKERS_WRITTEN, _S.COMPLETE_COMMIT),
    (_S.PREPARE_ABORT, _E.MARKERS_WRITTEN, _S.COMPLETE_ABORT),
    *((before, _E.EXPIRED, _S.DEAD) for before in BETWEEN_TRANSACTIONS),
)
