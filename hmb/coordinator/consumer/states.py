"""Declares the states of a member of a KIP-848 group.

At each heartbeat, a member takes one step from its current assignment towards its target assignment. After each
step, the member is in one of these states:
- Stable: the member owns its target assignment.
- UnrevokedPartitions: the member still owns partitions that it must give up. The member stays in its old epoch.
- UnreleasedPartitions: the member is in the epoch of the target. The member waits for partitions of its target that
  other members still own.

A member's step towards its target assignment has one of three results (`MemberEvent`): the member must give
up partitions, must wait for partitions, or owns its target assignment.

A target assignment can change at any time, so each state can follow any other. For example, a member owns
partition 0 and waits for partition 2. If its next target contains only partition 2, it must give up partition 0.

For each state of a member and each result of a step, the table `MEMBER_STATES` contains the next state.
`ConsumerMember` uses this table.

The module modern/states.py declares the states of the group.

Source: KIP-848; Kafka's `MemberState`.
"""

from __future__ import annotations

from enum import Enum

from hmb.protocol.enums import LabeledEnum
from hmb.state_table import StateTable


class MemberState(LabeledEnum):
    """A state of a member. The value is the number that represents the state in the member's record."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


class MemberEvent(Enum):
    """The result of a member's step towards its target assignment. The result determines the member's next state."""

    MUST_REVOKE = "the member owns partitions that it must give up"
    MUST_WAIT = "other members own partitions of the target"
    REACHES_TARGET = "the member owns all partitions of the target"


MEMBER_STATES = StateTable(
    *((before, MemberEvent.MUST_REVOKE, MemberState.UNREVOKED_PARTITIONS) for before in MemberState),
    *((before, MemberEvent.MUST_WAIT, MemberState.UNRELEASED_PARTITIONS) for before in MemberState),
    *((before, MemberEvent.REACHES_TARGET, MemberState.STABLE) for before in MemberState),
)
