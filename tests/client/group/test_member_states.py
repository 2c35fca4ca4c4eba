"""Tests of the state tables of a group member: each state can be reached, and each event occurs in a table."""

from __future__ import annotations

from enum import Enum
from typing import Any

import pytest

from hmb.client.group.member_states import (
    CLASSIC_MEMBER,
    CONSUMER_MEMBER,
    ClassicMemberEvent,
    ClassicMemberState,
    ConsumerMemberEvent,
    ConsumerMemberState,
)
from hmb.state_table import StateTable

TABLES: list[tuple[StateTable[Any, Any], Enum, type[Enum]]] = [
    (CLASSIC_MEMBER, ClassicMemberState.UNJOINED, ClassicMemberEvent),
    (CONSUMER_MEMBER, ConsumerMemberState.UNSUBSCRIBED, ConsumerMemberEvent),
]


@pytest.mark.parametrize(("table", "first", "events"), TABLES)
def test_every_state_can_be_reached(table: StateTable[Any, Any], first: Enum, events: type[Enum]) -> None:
    reached = {first}
    for _ in type(first):
        reached |= {after for before, _, after in table if before in reached}
    assert reached == set(type(first))


@pytest.mark.parametrize(("table", "first", "events"), TABLES)
def test_every_event_belongs_to_a_transition(table: StateTable[Any, Any], first: Enum, events: type[Enum]) -> None:
    assert {event for _, event, _ in table} == set(events)


def test_only_the_fatal_state_of_a_consumer_member_is_final() -> None:
    left = {before for before, _, after in CONSUMER_MEMBER if after is not before}
    assert set(ConsumerMemberState) - left == {ConsumerMemberState.FATAL}
    assert {before for before, _, after in CLASSIC_MEMBER if after is not before} == set(ClassicMemberState)
