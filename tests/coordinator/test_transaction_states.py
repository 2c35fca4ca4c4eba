"""The table of a transactional id's states."""

from __future__ import annotations

import itertools

import pytest

from hmb.coordinator.transactions.states import PREDECESSORS, TRANSITIONS, TransactionState, move

EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT, DEAD, FENCE = TransactionState


def test_the_table_is_kafkas() -> None:
    at_rest = {EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT}
    assert {
        EMPTY: at_rest,
        ONGOING: {ONGOING, *at_rest},
        PREPARE_COMMIT: {ONGOING},
        PREPARE_ABORT: {ONGOING, FENCE, *at_rest},
        COMPLETE_COMMIT: {PREPARE_COMMIT},
        COMPLETE_ABORT: {PREPARE_ABORT},
        DEAD: at_rest,
        FENCE: {ONGOING},
    } == PREDECESSORS


def test_every_other_step_is_refused() -> None:
    allowed = {(before, after) for before, after, _ in TRANSITIONS}
    assert len(allowed) == len(TRANSITIONS)
    for before, after in itertools.product(TransactionState, TransactionState):
        if (before, after) in allowed:
            assert move(before, after) is after
        else:
            with pytest.raises(AssertionError, match=f"from {before.label} to {after.label}"):
                move(before, after)


def test_the_names_are_those_that_admins_know() -> None:
    assert [state.label for state in (EMPTY, PREPARE_COMMIT, FENCE)] == ["Empty", "PrepareCommit", "PrepareEpochFence"]
