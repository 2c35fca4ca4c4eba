"""The states of a group of the classic protocol, and the one table of how it comes from one to the next.

A rebalance is a barrier in two halves.  In PreparingRebalance the coordinator collects JoinGroup requests until every
member has come; then it answers them all at once, and the leader among the members learns who is there.  In
CompletingRebalance it collects SyncGroup requests until the leader's has brought the assignment; then it answers these
all at once, and the group is Stable.  What is asked in between is answered by the state::

                          JoinGroup           SyncGroup               Heartbeat               OffsetCommit
    Empty                 starts a rebalance  UNKNOWN_MEMBER_ID       UNKNOWN_MEMBER_ID       only without a member
    PreparingRebalance    waits               REBALANCE_IN_PROGRESS   REBALANCE_IN_PROGRESS   yes
    CompletingRebalance   starts anew (*)     waits for the leader's  yes                     REBALANCE_IN_PROGRESS
    Stable                starts anew (*)     the assignment          yes                     yes
    Dead                  COORDINATOR_NOT_AVAILABLE to all of them

(*) unless the member tells nothing new: then it is told what the group agreed on.

`move` refuses every step that is not in TRANSITIONS, and the documentation's picture is drawn from it.

Source: Kafka's `ClassicGroupState`; design/kafka-0.7 on the rebalancing of consumers, whose place this protocol took.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class GroupState(Enum):
    """By the names that DescribeGroups and ListGroups tell."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Transition(NamedTuple):
    """One arrow of the picture."""

    before: GroupState
    after: GroupState
    because: str


TRANSITIONS = (
    Transition(GroupState.EMPTY, GroupState.PREPARING_REBALANCE, "a member joins"),
    Transition(GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE, "all have joined, or time is up"),
    Transition(GroupState.PREPARING_REBALANCE, GroupState.EMPTY, "the last member is gone"),
    Transition(GroupState.COMPLETING_REBALANCE, GroupState.STABLE, "the leader brings the assignment"),
    Transition(GroupState.COMPLETING_REBALANCE, GroupState.PREPARING_REBALANCE, "a member comes, goes or changes"),
    Transition(GroupState.STABLE, GroupState.PREPARING_REBALANCE, "a member comes, goes or changes"),
    Transition(GroupState.EMPTY, GroupState.DEAD, "it is deleted, or its last offset expires"),
    *(
        Transition(before, GroupState.DEAD, "the broker stops")
        for before in (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
    ),
)

PREDECESSORS = {state: frozenset(before for before, after, _ in TRANSITIONS if after is state) for state in GroupState}


def move(before: GroupState, after: GroupState) -> GroupState:
    """The state `after`, if it may follow: everything else is a fault of ours."""
    if before not in PREDECESSORS[after]:
        raise AssertionError(f"a group cannot go from {before.value} to {after.value}")
    return after
