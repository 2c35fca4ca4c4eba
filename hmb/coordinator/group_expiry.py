"""The expiry of committed offsets: which offsets of a group expire, and from which time on their retention counts.

Offsets of topics that the group still reads never expire. The broker knows these topics in a KIP-848 group. In a
classic group it reads them from the metadata of the members: a `ConsumerProtocolSubscription` begins with the topics in
all its versions.

The retention of an offset begins at this time (KIP-211)::

    KIP-848 group                             the commit of the offset
    classic group without members so far      the commit of the offset
    classic group, Empty                      the time at which the group became Empty
    classic group of consumers, Stable        the commit of the offset
    every other classic group                 no offset expires

For example, the retention is 7 days, and the last consumer of a classic group leaves on May 1. All offsets of the group
expire on May 8, even if their last commit was in April.

Source: KIP-211; Kafka's `ClassicGroup.offsetExpirationCondition` and `computeSubscribedTopics`.
"""

from __future__ import annotations

from functools import singledispatch

from hmb.coordinator.classic.group import ClassicGroup
from hmb.coordinator.classic.states import ClassicGroupState
from hmb.coordinator.group import Group
from hmb.coordinator.modern.group import ConsumerGroup
from hmb.coordinator.offsets import CommittedOffset, Expiry
from hmb.protocol.consumer_protocol import CONSUMER, ConsumerProtocolSubscription
from hmb.protocol.errors import ProtocolError

VERSION_SIZE = 2  # bytes: the version before the subscription


def subscribed_topics(subscription: bytes) -> list[str]:
    """Return the topics in the metadata of a consumer, of any version. Raises ProtocolError."""
    return ConsumerProtocolSubscription.decode_prefix(subscription, 0, VERSION_SIZE)[0].topics


def topics_of(group: ClassicGroup) -> set[str] | None:
    """Return the topics that a classic group of consumers reads.

    None means that they are unknown: the group has no protocol yet, or the metadata of a member cannot be decoded.
    """
    if not group.members:
        return set()
    topics: set[str] = set()
    try:
        for member in group.members:
            if group.protocol is None or not member.supports(group.protocol):
                return None
            topics.update(subscribed_topics(member.metadata(group.protocol)))
    except ProtocolError:
        return None
    return topics


@singledispatch
def is_subscribed(group: Group, topic: str) -> bool:
    """Return whether the group reads the topic. The result is True if the topics of the group are unknown."""
    raise TypeError(f"no such kind of group: {group!r}")


@is_subscribed.register
def _(group: ConsumerGroup, topic: str) -> bool:
    return group.is_subscribed(topic)


@is_subscribed.register
def _(group: ClassicGroup, topic: str) -> bool:
    if group.protocol_type != CONSUMER:
        return False
    topics = topics_of(group)
    return topics is None or topic in topics


@singledispatch
def expiry(group: Group) -> Expiry | None:
    """Return the rule by which the group's offsets expire. None means that no offset expires in the current state."""
    raise TypeError(f"no such kind of group: {group!r}")


@expiry.register
def _(group: ConsumerGroup) -> Expiry | None:
    return Expiry(_commit_time, group.is_subscribed)


@expiry.register
def _(group: ClassicGroup) -> Expiry | None:
    if group.protocol_type is None:  # The group has never had a member. A client uses it only to store offsets.
        return Expiry(_commit_time, lambda topic: False)
    if group.state is ClassicGroupState.EMPTY:
        since = group.state_timestamp
        return Expiry(_commit_time if since == -1 else lambda offset: since, lambda topic: False)
    topics = topics_of(group) if group.protocol_type == CONSUMER else None
    if group.state is ClassicGroupState.STABLE and topics is not None:
        return Expiry(_commit_time, topics.__contains__)
    return None


def _commit_time(offset: CommittedOffset) -> int:
    return offset.commit_timestamp
