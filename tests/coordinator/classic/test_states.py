"""Tests of the state transitions of a classic group."""

from __future__ import annotations

import itertools

import pytest

from hmb.coordinator.classic.states import TRANSITIONS, GroupEvent
from hmb.protocol.enums import GroupState
from tests.coordinator.predecessors import predecessors


def test_the_table_is_kafkas() -> None:
    """The table has the same transitions as Kafka's `ClassicGroupState`, but none from Dead to Dead."""
    empty, preparing, completing = GroupState.EMPTY, GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE
    stable, dead = GroupState.STABLE, GroupState.DEAD
    assert predecessors(TRANSITIONS) == {
        empty: {preparing},
        preparing: {stable, completing, empty},
        completing: {preparing},
        stable: {completing},
        dead: {stable, preparing, completing, empty},
    }


def test_every_other_transition_is_refused() -> None:
    allowed = {(before, event): after for before, event, after in TRANSITIONS}
    for state, event in itertools.product(GroupState, GroupEvent):
        if (state, event) in allowed:
            assert TRANSITIONS.next(state, event) is allowed[state, event]
        else:
            with pytest.raises(AssertionError, match=f"{event} cannot happen in state {state}"):
                TRANSITIONS.next(state, event)
