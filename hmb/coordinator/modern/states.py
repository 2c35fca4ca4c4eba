"""Declares the states of a KIP-848 group or a share group.

The broker does not store the state of a group. It computes the state from the members and from two numbers.
The *group epoch* increases with each change of the group. The broker then computes a new target assignment,
and sets the *assignment epoch* to the group epoch. The list `GROUP_STATES` contains pairs of a state and a
condition. The group is in the first state whose condition is true. A streams group has an additional state
(streams/states.py).

For example, the group "readers" has group epoch 5 and assignment epoch 4, so its state is Assigning. The
assignor then computes a target assignment for epoch 5, and the assignment epoch becomes 5. The state of the
group is now Reconciling. When every member owns its part of the target assignment in epoch 5, the state becomes
Stable.

Source: KIP-848; Kafka's `ConsumerGroup.maybeUpdateGroupState`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from hmb.protocol.enums import GroupState


class GroupFacts(NamedTuple):
    """The facts about a group that determine its state."""

    is_unloaded: bool
    is_empty: bool
    is_target_old: bool  # whether the group epoch is greater than the assignment epoch
    is_reconciled: bool  # whether all members own their target assignments
    is_ready: bool = True  # false only for a streams group that cannot run yet, for example because a topic is missing


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
    """Return the state of a group: the first state in `rows` whose condition is true for `facts`."""
    return next(row.state for row in rows if row.holds(facts))
