"""Tests of the states of a KIP-848 group and of its members."""

from __future__ import annotations

import itertools

import pytest

from hmb.coordinator.modern.states import (
    GROUP_STATES,
    MEMBER_STATES,
    GroupFacts,
    MemberEvent,
    MemberState,
    state_of,
)
from hmb.protocol.enums import GroupState


def test_every_event_can_happen_to_a_member_in_every_state() -> None:
    for state, event in itertools.product(MemberState, MemberEvent):
        assert MEMBER_STATES.allows(state, event)


def test_the_states_of_members_have_kafkas_names() -> None:
    assert [state.label for state in MemberState] == ["Stable", "UnrevokedPartitions", "UnreleasedPartitions"]


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
