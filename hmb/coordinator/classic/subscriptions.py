"""The topics that the members of a classic group read. The group's committed offsets for these topics do not expire.

In a classic group, the broker does not assign partitions. One of the members does this work. The broker can
still find the topics that a consumer reads, because the metadata in the consumer's JoinGroup request lists
them.

For example, the metadata `00 03 00 00 00 01 00 01 61 ...` begins with version 3 (2 bytes). The next 4 bytes
are the number of topics, 1. The name of the topic follows: its length, 1 (2 bytes), and the letter "a" (the
byte 61).
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
    """Return the topics to which the members of a classic consumer group subscribe.

    Return None if the topics are unknown: the group has no protocol yet, or the metadata of a member cannot be
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
