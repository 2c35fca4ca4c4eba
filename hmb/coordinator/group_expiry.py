"""The expiry of committed offsets: which offsets of a group expire, and when their retention time starts.

A committed offset does not expire while the group reads the offset's topic. The broker must therefore know
which topics a group reads. In a KIP-848 group, the members send the names of the topics to the broker. In a
streams group, the topology contains the names. In a classic group, each member sends a struct
`ConsumerProtocolSubscription` as its metadata. Every version of this struct begins with the names of the
topics, so the broker can read them.

The retention time of an offset starts at one of these events (KIP-211):
    group                                     event at which the retention time of an offset starts
    KIP-848 group, streams group              the commit of the offset
    classic group that never had a member     the commit of the offset
    classic group, Empty                      the group becomes Empty
    classic group of consumers, Stable        the commit of the offset
    every other classic group                 (none: its offsets do not expire)

For example, the retention time of committed offsets is 7 days, and the last consumer of a classic group leaves on
May 1. All offsets of the group expire on May 8, even if the last commit was in April: the retention time of an empty
classic group starts when the group becomes empty.

Source: KIP-211; Kafka's `ClassicGroup.offsetExpirationCondition` and `computeSubscribedTopics`.
"""

from __future__ import annotations

from hmb.coordinator.classic.group import ClassicGroup
from hmb.coordinator.classic.subscriptions import topics_of
from hmb.coordinator.group import Group
from hmb.coordinator.offsets import CommittedOffset, Expiry
from hmb.protocol.consumer_protocol import CONSUMER
from hmb.protocol.enums import GroupState, GroupType


def expiry(group: Group) -> Expiry | None:
    """Return the rule that decides which offsets of the group expire, or None while no offset can expire."""
    if group.kind is GroupType.SHARE:
        return None  # A share group stays until a client deletes it, because its share-partitions do not expire.
    if not isinstance(group, ClassicGroup):
        return Expiry(_commit_time, group.reads)
    if group.protocol_type is None:  # The group never had a member and only stores offsets.
        return Expiry(_commit_time, lambda topic: False)
    if group.state.current is GroupState.EMPTY:
        since = group.state.timestamp
        return Expiry(_commit_time if since == -1 else lambda offset: since, lambda topic: False)
    topics = topics_of(group.state) if group.protocol_type == CONSUMER else None
    if group.state.current is GroupState.STABLE and topics is not None:
        return Expiry(_commit_time, topics.__contains__)
    return None


def _commit_time(offset: CommittedOffset) -> int:
    return offset.commit_timestamp
