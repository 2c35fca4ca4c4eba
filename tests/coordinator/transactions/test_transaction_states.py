"""Tests of the transitions between the states of a transactional id."""

from __future__ import annotations

import itertools

import pytest

from hmb.coordinator.transactions.states import TRANSITIONS, TransactionEvent, TransactionState
from tests.coordinator.predecessors import predecessors

EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT, DEAD, FENCE = TransactionState


def test_the_table_is_kafkas() -> None:
    at_rest = {EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT}
    assert predecessors(TRANSITIONS) == {
        EMPTY: at_rest,
        ONGOING: {ONGOING, *at_rest},
        PREPARE_COMMIT: {ONGOING},
        PREPARE_ABORT: {ONGOING, FENCE, *at_rest},
        COMPLETE_COMMIT: {PREPARE_COMMIT},
        COMPLETE_ABORT: {PREPARE_ABORT},
        DEAD: at_rest,
        FENCE: {ONGOING},
    }


def test_every_other_transition_is_refused() -> None:
    allowed = {(before, event): after for before, event, after in TRANSITIONS}
    for state, event in itertools.product(TransactionState, TransactionEvent):
        if (state, event) in allowed:
            assert TRANSITIONS.next(state, event) is allowed[state, event]
        else:
            with pytest.raises(AssertionError, match=f"{event} cannot happen in state {state}"):
                TRANSITIONS.next(state, event)


def test_the_states_have_kafkas_names() -> None:
    assert [state.label for state in (EMPTY, PREPARE_COMMIT, FENCE)] == ["Empty", "PrepareCommit", "PrepareEpochFence"]
