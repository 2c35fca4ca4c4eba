"""The table of a group's states."""

from __future__ import annotations

import itertools

import pytest

from hmb.coordinator.classic.states import PREDECESSORS, TRANSITIONS, GroupState, move


def test_the_table_is_kafkas() -> None:
    """As `ClassicGroupState` has it, but that nothing is deleted twice."""
    empty, preparing, completing, stable, dead = GroupState
    assert {
        empty: {preparing},
        preparing: {stable, completing, empty},
        completing: {preparing},
        stable: {completing},
        dead: {stable, preparing, completing, empty},
    } == PREDECESSORS


def test_every_other_step_is_refused() -> None:
    allowed = {(before, after) for before, after, _ in TRANSITIONS}
    for before, after in itertools.product(GroupState, GroupState):
        if (before, after) in allowed:
            assert move(before, after) is after
        else:
            with pytest.raises(AssertionError, match=f"from {before.value} to {after.value}"):
                move(before, after)


def test_each_arrow_of_the_picture_has_its_reason_once() -> None:
    assert len({(before, after) for before, after, _ in TRANSITIONS}) == len(TRANSITIONS)
    assert all(because for _, _, because in TRANSITIONS)
