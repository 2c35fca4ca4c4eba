"""Tests of the states of a KIP-848 group."""

from __future__ import annotations

import pytest

from hmb.coordinator.modern.states import GROUP_STATES, GroupFacts, state_of
from hmb.protocol.enums import GroupState


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        (GroupFacts(is_unloaded=True, is_empty=True, is_target_old=True, is_reconciled=True), "Dead"),
        (GroupFacts(is_unloaded=False, is_empty=True, is_target_old=True, is_reconciled=True), "Empty"),
        (GroupFacts(is_unloaded=False, is_empty=False, is_target_old=True, is_reconciled=False), "Assigning"),
        (GroupFacts(is_unloaded=False, is_empty=False, is_target_old=False, is_reconciled=False), "Reconciling"),
        (GroupFacts(is_unloaded=False, is_empty=False, is_target_old=False, is_reconciled=True), "Stable"),
    ],
)
def test_the_state_of_a_group_follows_from_its_epochs_and_members(facts: GroupFacts, state: str) -> None:
    assert state_of(facts) is GroupState(state)


def test_each_state_of_a_group_has_one_condition() -> None:
    states = [GroupState.DEAD, GroupState.EMPTY, GroupState.ASSIGNING, GroupState.RECONCILING, GroupState.STABLE]
    assert [row.state for row in GROUP_STATES] == states
