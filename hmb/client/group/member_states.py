"""The states of a group member: one table for each of the two group protocols.

A state table contains the next state of the member for each pair of a state and an event. The module `classic_member`
uses one table, and `consumer_member` uses another table. The two tables differ, because only a member of a classic
group must wait until all members have joined.
"""

from __future__ import annotations

from enum import Enum

from hmb.state_table import StateTable


class ClassicMemberState(Enum):
    """The states of a member of a classic group. The module `classic_member` explains each state."""

    UNJOINED = "unjoined"
    JOINING = "joining"
    ASSIGNING = "assigning"
    SYNCING = "syncing"
    APPLYING = "applying"
    STABLE = "stable"


class ClassicMemberEvent(Enum):
    """The events that change the state of a member of a classic group."""

    READY_TO_JOIN = "the consumer has given up what it must not keep"
    JOINED = "JoinGroup is answered, another member leads or the assignment exists"
    JOINED_AS_LEADER = "JoinGroup is answered, this member has to assign the partitions"
    ASSIGNED = "the leader has assigned the partitions"
    SYNCED = "SyncGroup is answered with an assignment"
    SYNC_INTERRUPTED = "SyncGroup is answered with REBALANCE_IN_PROGRESS"
    APPLIED = "the consumer has taken over its partitions"
    APPLIED_IN_PART = "the consumer has taken over its partitions, and another rebalance is due"
    REBALANCE_DUE = "REBALANCE_IN_PROGRESS, or a change of the subscription or of a topic"
    REMOVED = "the member has left, or the group has removed it"


_S, _E = ClassicMemberState, ClassicMemberEvent
CLASSIC_MEMBER = StateTable(
    (_S.UNJOINED, _E.READY_TO_JOIN, _S.JOINING),
    (_S.JOINING, _E.JOINED, _S.SYNCING),
    (_S.JOINING, _E.JOINED_AS_LEADER, _S.ASSIGNING),
    (_S.ASSIGNING, _E.ASSIGNED, _S.SYNCING),
    (_S.SYNCING, _E.SYNCED, _S.APPLYING),
    (_S.SYNCING, _E.SYNC_INTERRUPTED, _S.UNJOINED),
    (_S.APPLYING, _E.APPLIED, _S.STABLE),
    (_S.APPLYING, _E.APPLIED_IN_PART, _S.UNJOINED),
    (_S.STABLE, _E.REBALANCE_DUE, _S.UNJOINED),
    (_S.UNJOINED, _E.REMOVED, _S.UNJOINED),
    (_S.JOINING, _E.REMOVED, _S.UNJOINED),
    (_S.SYNCING, _E.REMOVED, _S.UNJOINED),
    (_S.APPLYING, _E.REMOVED, _S.UNJOINED),
    (_S.STABLE, _E.REMOVED, _S.UNJOINED),
)


class ConsumerMemberState(Enum):
    """The states of a member that uses the consumer protocol (KIP-848).

    The module `consumer_member` explains each state.
    """

    UNSUBSCRIBED = "unsubscribed"
    JOINING = "joining"
    RECONCILING = "reconciling"
    STABLE = "stable"
    FENCED = "fenced"
    FATAL = "fatal"


class ConsumerMemberEvent(Enum):
    """The events that change the state of a member that uses the consumer protocol (KIP-848)."""

    SUBSCRIBED = "the consumer subscribes to topics"
    JOINED = "the first heartbeat is answered without an assignment"
    ASSIGNMENT_RECEIVED = "a heartbeat is answered with an assignment"
    RECONCILED = "the consumer has taken over the assignment"
    REMOVED = "the coordinator has fenced the member, or the member has left"
    LOSS_HANDLED = "the consumer has stopped reading the lost partitions"
    FAILED = "a fatal error"


_CS, _CE = ConsumerMemberState, ConsumerMemberEvent
CONSUMER_MEMBER = StateTable(
    (_CS.UNSUBSCRIBED, _CE.SUBSCRIBED, _CS.JOINING),
    (_CS.JOINING, _CE.JOINED, _CS.STABLE),
    (_CS.JOINING, _CE.ASSIGNMENT_RECEIVED, _CS.RECONCILING),
    (_CS.RECONCILING, _CE.ASSIGNMENT_RECEIVED, _CS.RECONCILING),
    (_CS.STABLE, _CE.ASSIGNMENT_RECEIVED, _CS.RECONCILING),
    (_CS.RECONCILING, _CE.RECONCILED, _CS.STABLE),
    (_CS.JOINING, _CE.REMOVED, _CS.FENCED),
    (_CS.RECONCILING, _CE.REMOVED, _CS.FENCED),
    (_CS.STABLE, _CE.REMOVED, _CS.FENCED),
    (_CS.FENCED, _CE.LOSS_HANDLED, _CS.JOINING),
    (_CS.JOINING, _CE.FAILED, _CS.FATAL),
    (_CS.RECONCILING, _CE.FAILED, _CS.FATAL),
    (_CS.STABLE, _CE.FAILED, _CS.FATAL),
    (_CS.FENCED, _CE.FAILED, _CS.FATAL),
    (_CS.FATAL, _CE.FAILED, _CS.FATAL),
)
