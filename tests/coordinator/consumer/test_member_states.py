"""Tests of the states of a member of a KIP-848 group."""

from __future__ import annotations

import itertools

from hmb.coordinator.consumer.states import MEMBER_STATES, MemberEvent, MemberState


def test_every_event_can_happen_to_a_member_in_every_state() -> None:
    for state, event in itertools.product(MemberState, MemberEvent):
        assert MEMBER_STATES.allows(state, event)


def test_the_states_of_members_have_kafkas_names() -> None:
    assert [state.label for state in MemberState] == ["Stable", "UnrevokedPartitions", "UnreleasedPartitions"]
