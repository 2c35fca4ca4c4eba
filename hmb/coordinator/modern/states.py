"""Declares the states of a KIP-848 group and of its members.

A *member* moves from its current assignment to its target assignment. The member takes one step at each heartbeat.
After each step, the member is in one of these states:
- Stable: the member owns its target assignment.
- UnrevokedPartitions: the member still owns partitions that it must give up. The member stays in its old epoch.
- UnreleasedPartitions: the member is in the epoch of the target. The member waits for partitions of its target that
  other members still own.

The target assignment of a member can change again before the member owns all its partitions. Each event of a member can
therefore occur in each of its states. `ConsumerMember` looks up the member's next state in the table `MEMBER_STATES`.

The state of a *group* is not stored. The broker derives it from the members and from two epochs. The group epoch
increases with each change of the group. The assignment epoch is the group epoch for which the assignor has computed the
target assignment. The list `GROUP_STATES` contains a condition for each state. The first state whose condition is true
is the state of the group.

For example, group "readers" has group epoch 5 and assignment epoch 4, so its state is Assigning. The assignor computes
a target assignment, and the assignment epoch becomes 5. The state is Reconciling until each member is Stable in epoch
5.

Source: KIP-848; Kafka's `ConsumerGroup.maybeUpdateGroupState` and `MemberState`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple

from hmb.protocol.enums import GroupState, LabeledEnum
from hmb.state_table import StateTable


class MemberState(LabeledEnum):
    """A state of a member. The value is the number that represents the state in the member's record."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


class MemberEvent(Enum):
    """An event that changes the state of a member: the result of one step towards the member's target assignment."""

    MUST_REVOKE = "the member owns partitions that it must give up"
    MUST_WAIT = "other members own partitions of the target"
    REACHES_TARGET = "the member owns all partitions of the target"


MEMBER_STATES = StateTable(
    *((before, MemberEvent.MUST_REVOKE, MemberState.UNREVOKED_PARTITIONS) for before in MemberState),
    *((before, MemberEvent.MUST_WAIT, MemberState.UNRELEASED_PARTITIONS) for before in MemberState),
    *((before, MemberEvent.REACHES_TARGET, MemberState.STABLE) for before in MemberState),
)


class GroupFacts(NamedTuple):
    """The facts about a group that determine its state."""

    is_unloaded: bool
    is_empty: bool
    is_target_old: bool  # whether the group epoch is greater than the assignment epoch
    is_reconciled: bool  # whether all members own their target assignments
    is_ready: bool = True  # false only for a streams group whose topics are not complete


class StateCondition(NamedTuple):
    """An entry of `GROUP_STATES`: a state, and the condition under which a group is in this state."""

    state: GroupState
    holds: Callable[[GroupFacts], bool]


GROUP_STATES = (
    StateCondition(GroupState.DEAD, lambda facts: facts.is_empty and facts.is_unloaded),
    StateCondition(GroupState.EMPTY, lambda facts: facts.is_empty),
    StateCondition(GroupState.ASSIGNING, lambda facts: facts.is_target_old),
    StateCondition(GroupState.RECONCILING, lambda facts: not facts.is_reconciled),
    StateCondition(GroupState.STABLE, lambda facts: True),
)


def state_of(facts: GroupFacts, rows: Iterable[StateCondition] = GROUP_STATES) -> GroupState:
    """Return the state of a group with these facts: the first state in `rows` whose condition is true."""
    return next(row.state for row in rows if row.holds(facts))
