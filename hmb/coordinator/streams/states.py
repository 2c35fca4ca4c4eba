"""Declares the states of the members of a streams group, and of the group itself.

A member moves from its current tasks to its target tasks, one step at each heartbeat. After each step, the member is in
one of these states:
- Stable: the member owns its target tasks.
- UnrevokedTasks: the member still owns tasks that it must give up.
- UnreleasedTasks: the member waits for tasks that other members still own.

Each new target has a greater epoch than the previous target. The epoch of a member becomes the target's epoch
when the member has no more tasks to give up.

A member can be in any state when the broker computes new target tasks. From each state, the next step can
lead to any state. The table `STREAMS_MEMBER_STATES` has a transition for each state and each result (event).

For example, a member waits for tasks that other members still own (UnreleasedTasks). Then the broker assigns one of
the member's own tasks to another member. The member must give up this task, so its state becomes UnrevokedTasks.

The broker does not store the state of a streams *group*. Instead, it computes the state from the members and
from two epochs, as for a KIP-848 group (modern/states.py). The *group epoch* increases with each change of the
group. The *assignment epoch* is the group epoch for which the broker has computed the target tasks.

Only a streams group can have the state NotReady. In this state, topics of the application are missing, or have
the wrong number of partitions.

Source: KIP-1071; Kafka's `MemberState` and `StreamsGroup.maybeUpdateGroupState`.
"""

from __future__ import annotations

from enum import Enum

from hmb.coordinator.modern.states import GROUP_STATES, StateCondition
from hmb.protocol.enums import GroupState, LabeledEnum
from hmb.state_table import StateTable


class StreamsMemberState(LabeledEnum):
    """A state of a member. The value is the number that represents the state in the member's record."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3


class StreamsMemberEvent(Enum):
    """The result of a member's step towards its target tasks. The result determines the member's next state."""

    MUST_REVOKE = "the member owns tasks that it must give up"
    MUST_WAIT = "other members own tasks of the target"
    REACHES_TARGET = "the member owns all tasks of the target"


STREAMS_MEMBER_STATES = StateTable(
    *((before, StreamsMemberEvent.MUST_REVOKE, StreamsMemberState.UNREVOKED_TASKS) for before in StreamsMemberState),
    *((before, StreamsMemberEvent.MUST_WAIT, StreamsMemberState.UNRELEASED_TASKS) for before in StreamsMemberState),
    *((before, StreamsMemberEvent.REACHES_TARGET, StreamsMemberState.STABLE) for before in StreamsMemberState),
)

_DEAD, _EMPTY, *_OTHERS = GROUP_STATES
STREAMS_GROUP_STATES = (
    _DEAD,
    _EMPTY,
    StateCondition(GroupState.NOT_READY, lambda facts: not facts.is_ready),
    *_OTHERS,
)
