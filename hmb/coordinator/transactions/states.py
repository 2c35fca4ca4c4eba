"""The states of a transactional id, and the one table of how it comes from one to the next.

A transaction is decided in one moment: when PrepareCommit or PrepareAbort is in the journal.  What follows, a marker in
every partition that has records of it, only makes the decision known, and is done again after a crash until
CompleteCommit or CompleteAbort is in the journal, too.  That is two-phase commit with a log: phase one is the journal's
record, phase two the markers::

                     AddPartitionsToTxn        EndTxn                    InitProducerId
    Empty            starts a transaction      INVALID_TXN_STATE (*)     a new epoch
    Ongoing          adds                      decides                   aborts, and is to be asked again
    Prepare...       CONCURRENT_TRANSACTIONS   CONCURRENT_TRANSACTIONS   CONCURRENT_TRANSACTIONS
    Complete...      starts a transaction      the same answer again (*) a new epoch

(*) A producer of transaction version 2 (KIP-890) may abort here as well: it cannot know whether its records have come.

PrepareEpochFence is passed through on the way from Ongoing to PrepareAbort, where it is not the producer that aborts:
its epoch is raised first, so that nothing which it sends meanwhile is taken.

Source: KIP-98, KIP-890; Kafka's `TransactionState`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class TransactionState(IntEnum):
    """By the numbers that the journal's records have for them."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """As DescribeTransactions and ListTransactions tell it: PrepareCommit."""
        return self.name.title().replace("_", "")


class Transition(NamedTuple):
    """One arrow of the picture."""

    before: TransactionState
    after: TransactionState
    because: str


AT_REST = (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
DECIDED = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

TRANSITIONS = (
    *(Transition(before, TransactionState.EMPTY, "a producer asks for its id and epoch") for before in AT_REST),
    *(Transition(before, TransactionState.ONGOING, "the first partition") for before in AT_REST),
    Transition(TransactionState.ONGOING, TransactionState.ONGOING, "another partition"),
    Transition(TransactionState.ONGOING, TransactionState.PREPARE_COMMIT, "the producer commits"),
    Transition(TransactionState.ONGOING, TransactionState.PREPARE_ABORT, "the producer aborts"),
    *(Transition(before, TransactionState.PREPARE_ABORT, "the producer aborts, perhaps nothing") for before in AT_REST),
    Transition(TransactionState.ONGOING, TransactionState.PREPARE_EPOCH_FENCE, "its time is up, or a newer one starts"),
    Transition(TransactionState.PREPARE_EPOCH_FENCE, TransactionState.PREPARE_ABORT, "the older one is shut out"),
    Transition(TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT, "all markers are written"),
    Transition(TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT, "all markers are written"),
    *(Transition(before, TransactionState.DEAD, "nobody has used it for long") for before in AT_REST),
)

PREDECESSORS = {
    state: frozenset(before for before, after, _ in TRANSITIONS if after is state) for state in TransactionState
}


def move(before: TransactionState, after: TransactionState) -> TransactionState:
    """The state `after`, if it may follow: everything else is a fault of ours."""
    if before not in PREDECESSORS[after]:
        raise AssertionError(f"a transaction cannot go from {before.label} to {after.label}")
    return after
