"""When the offsets of a group expire: what it still reads is kept, the rest has its time.

In a group of KIP-848's protocol, where the broker knows who reads what, each offset that nobody reads has its time from
its commit on. With the classic protocol it is not so plain. Since KIP-211 the retention of an offset begins when its
group became Empty. In a Stable group of consumers offsets expire too, each some time after its commit, where nobody
reads the topic any more; for that the coordinator has a look into the members' metadata, which is otherwise the
leader's business: a `ConsumerProtocolSubscription` begins with the topics in all its versions.

Source: KIP-211; Kafka's `ClassicGroup.offsetExpirationCondition` and `computeSubscribedTopics`.
"""

from __future__ import annotations

from functools import singledispatch

from hmb.coordinator.classic.group import ClassicGroup
from hmb.coordinator.classic.states import GroupState
from hmb.coordinator.group import Group
from hmb.coordinator.modern.group import ConsumerGroup
from hmb.coordinator.offsets import CommittedOffset, Expiry
from hmb.protocol.consumer_protocol import CONSUMER, ConsumerProtocolSubscription
from hmb.protocol.errors import ProtocolError

VERSION_SIZE = 2  # bytes in front


def subscribed_topics(subscription: bytes) -> list[str]:
    """The topics that a consumer reads, by its metadata of whatever version. Raises ProtocolError."""
    return ConsumerProtocolSubscription.decode_prefix(subscription, 0, VERSION_SIZE)[0].topics


def topics_of(group: ClassicGroup) -> set[str] | None:
    """The topics that a group of consumers reads; None where that cannot be known (yet)."""
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
    """Whether a consumer of the group reads the topic, or might."""
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
    """When its offsets expire; None: not as long as it is as it is."""
    raise TypeError(f"no such kind of group: {group!r}")


@expiry.register
def _(group: ConsumerGroup) -> Expiry | None:
    return Expiry(_commit_time, group.is_subscribed)


@expiry.register
def _(group: ClassicGroup) -> Expiry | None:
    if group.protocol_type is None:  # no members ever: a name under which a client keeps offsets
        return Expiry(_commit_time, lambda topic: False)
    if group.state is GroupState.EMPTY:
        since = group.state_timestamp
        return Expiry(_commit_time if since == -1 else lambda offset: since, lambda topic: False)
    topics = topics_of(group) if group.protocol_type == CONSUMER else None
    if group.state is GroupState.STABLE and topics is not None:
        return Expiry(_commit_time, topics.__contains__)
    return None


def _commit_time(offset: CommittedOffset) -> int:
    return offset.commit_timestamp
