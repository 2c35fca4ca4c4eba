"""The topics that the members of a classic group read. The group's committed offsets for these topics do not expire.

In a classic group, one of the members assigns the partitions, and not the broker. For the assignment, the
broker therefore does not need to know which topics the members read. But the metadata that each consumer sends
contains its topics, so the broker can find them there. For example, the metadata `00 03 00 00 00 01 00 01 61
...` begins with the version 3. After the version comes a list with one topic, "a".
"""

from __future__ import annotations

from hmb.coordinator.classic.state import ClassicState
from hmb.protocol.consumer_protocol import ConsumerProtocolSubscription
from hmb.protocol.errors import ProtocolError

VERSION_SIZE = 2  # bytes: the metadata of a member begins with its version, an int16


def subscribed_topics(subscription: bytes) -> list[str]:
    """Return the names of the topics in a consumer's metadata. Raises ProtocolError if the metadata is malformed.

    The metadata can have any version, because each version begins with the same fields.
    """
    return ConsumerProtocolSubscription.decode_prefix(subscription, 0, VERSION_SIZE)[0].topics


def topics_of(state: ClassicState) -> set[str] | None:
    """Return the topics that the members of a classic group of consumers read.

    None means that the topics are unknown: the group has no protocol yet, or the metadata of a member cannot be
    decoded.
    """
    if not state.members:
        return set()
    topics: set[str] = set()
    try:
        for member in state.members:
            if state.protocol is None or not member.supports(state.protocol):
                return None
            topics.update(subscribed_topics(member.metadata(state.protocol)))
    except ProtocolError:
        return None
    return topics
