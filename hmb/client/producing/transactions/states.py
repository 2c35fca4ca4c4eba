"""Declares the states of a transactional producer, and the allowed changes of its state.

The producer of a transaction goes through these states:
    UNINITIALIZED -> READY -> IN_TRANSACTION -> COMMITTING -> READY
                                             -> ABORTING   -> READY

If a record is not delivered, the state of the producer becomes ABORTABLE_ERROR. The application can then only abort the
transaction. A fatal error changes any state to FATAL_ERROR. The application can then only close the producer.
"""

from __future__ import annotations

from enum import Enum

from hmb.state_table import StateTable


class TransactionalState(Enum):
    """The state of a transactional producer. The value is a text for error messages."""

    UNINITIALIZED = "init_transactions() comes first"
    READY = "no transaction has begun"
    IN_TRANSACTION = "a transaction has begun"
    COMMITTING = "the transaction is being committed"
    ABORTING = "the transaction is being aborted"
    ABORTABLE_ERROR = "the transaction has failed and has to be aborted"
    FATAL_ERROR = "the producer cannot be used any more"


class TransactionalEvent(Enum):
    """An event that changes the state of a transactional producer."""

    INITIALIZED = "the coordinator assigns a producer id"
    BEGIN = "begin_transaction"
    COMMIT = "commit_transaction"
    COMMIT_INTERRUPTED = "the commit ends before the coordinator is asked"
    ABORT = "abort_transaction"
    FINISHED = "the coordinator has ended the transaction"
    BATCH_FAILED = "a record is not delivered"
    FENCED = "a fatal error, for example a newer producer"


_S, _E = TransactionalState, TransactionalEvent
TRANSITIONS = StateTable(
    (_S.UNINITIALIZED, _E.INITIALIZED, _S.READY),
    (_S.READY, _E.BEGIN, _S.IN_TRANSACTION),
    (_S.IN_TRANSACTION, _E.COMMIT, _S.COMMITTING),
    (_S.IN_TRANSACTION, _E.ABORT, _S.ABORTING),
    (_S.IN_TRANSACTION, _E.BATCH_FAILED, _S.ABORTABLE_ERROR),
    (_S.COMMITTING, _E.COMMIT, _S.COMMITTING),
    (_S.COMMITTING, _E.COMMIT_INTERRUPTED, _S.IN_TRANSACTION),
    (_S.COMMITTING, _E.FINISHED, _S.READY),
    (_S.COMMITTING, _E.BATCH_FAILED, _S.ABORTABLE_ERROR),
    (_S.ABORTING, _E.ABORT, _S.ABORTING),
    (_S.ABORTING, _E.FINISHED, _S.READY),
    (_S.ABORTABLE_ERROR, _E.ABORT, _S.ABORTING),
    *((state, _E.FENCED, _S.FATAL_ERROR) for state in TransactionalState if state is not _S.FATAL_ERROR),
)
