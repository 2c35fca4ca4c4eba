"""The states of a classic group, and the table of the transitions between them.

A rebalance of a group is a barrier: each member waits until all members have arrived. The barrier has two halves. In
the state PreparingRebalance, the coordinator collects JoinGroup requests until every member has sent one. The
coordinator then answers all JoinGroup requests, and one member, the leader, receives the list of members. In the state
CompletingRebalance, the coordinator collects SyncGroup requests until the leader sends the assignment. The coordinator
then answers all SyncGroup requests, and the group is Stable.

The next table shows the result of a request in each state of the group:
    state of the group    JoinGroup           SyncGroup                Heartbeat               OffsetCommit
    Empty                 starts a rebalance  UNKNOWN_MEMBER_ID        UNKNOWN_MEMBER_ID       succeeds (**)
    PreparingRebalance    waits               REBALANCE_IN_PROGRESS    REBALANCE_IN_PROGRESS   succeeds
    CompletingRebalance   see (*)             waits for the leader     succeeds                REBALANCE_IN_PROGRESS
    Stable                see (*)             gets the assignment      succeeds                succeeds
    Dead                  COORDINATOR_NOT_AVAILABLE for every request
    (*) JoinGroup starts a new rebalance in three cases: the member is new, its metadata has changed, or the
        leader of a Stable group sends the request. Otherwise, the response contains the current generation.
    (**) OffsetCommit succeeds only if the request contains no generation. A client that uses the group only to
        store offsets is not a member, and sends no generation.

For example, a group has two consumers, and one of them crashes. The event MEMBERS_CHANGED moves the group from Stable
to PreparingRebalance. The event ALL_JOINED moves the group to CompletingRebalance, and the event ASSIGNED moves it back
to Stable.

`ClassicState.move` looks up the next state of a group in the table `TRANSITIONS`. The picture of the states in the
documentation is drawn from the same table.

Source: Kafka's `ClassicGroupState`. The Kafka 0.7 design describes an older protocol, in which consumers rebalance
through ZooKeeper. The classic group protocol replaced it.
"""

from __future__ import annotations

from enum import Enum

from hmb.protocol.enums import GroupState
from hmb.state_table import StateTable


class GroupEvent(Enum):
    """An event that changes the state of a classic group."""

    MEMBERS_CHANGED = "a member joins, leaves or changes its metadata"
    ALL_JOINED = "all members have joined, or the rebalance timeout has passed"
    ALL_LEFT = "the last member has left"
    ASSIGNED = "the assignment of the leader is stored"
    UNLOADED = "the group is deleted, or the broker stops"


_S, _E = GroupState, GroupEvent
TRANSITIONS = StateTable(
    (_S.EMPTY, _E.MEMBERS_CHANGED, _S.PREPARING_REBALANCE),
    (_S.PREPARING_REBALANCE, _E.ALL_JOINED, _S.COMPLETING_REBALANCE),
    (_S.PREPARING_REBALANCE, _E.ALL_LEFT, _S.EMPTY),
    (_S.COMPLETING_REBALANCE, _E.ASSIGNED, _S.STABLE),
    (_S.COMPLETING_REBALANCE, _E.MEMBERS_CHANGED, _S.PREPARING_REBALANCE),
    (_S.STABLE, _E.MEMBERS_CHANGED, _S.PREPARING_REBALANCE),
    (_S.EMPTY, _E.UNLOADED, _S.DEAD),
    (_S.PREPARING_REBALANCE, _E.UNLOADED, _S.DEAD),
    (_S.COMPLETING_REBALANCE, _E.UNLOADED, _S.DEAD),
    (_S.STABLE, _E.UNLOADED, _S.DEAD),
)
