"""A limit for the memory of group members: their metadata or their subscriptions.

Kafka limits only the number of members (`group.max.size`). A member can send as much metadata as a request can hold,
and the coordinator stores it until the session ends. HMB rejects a member whose metadata is too large for a record, and
members whose metadata exceeds the limit together with all other groups.

For example, a member with 2 MB of metadata gets INVALID_REQUEST.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hmb.coordinator.shared_group import SharedGroup
from hmb.protocol.errors import ErrorCode, KafkaError

MOST_OF_ONE = 1_000_000  # bytes: the group's record has at most max.message.bytes, 1,048,588 by default
MOST_OF_ALL = 48 * 1024 * 1024  # bytes
SMALL = 4096  # bytes: a smaller member is accepted without a check of the total


def check_room(size: int, groups: Callable[[], Iterable[SharedGroup]]) -> None:
    """Raise INVALID_REQUEST or GROUP_MAX_SIZE_REACHED if a member with `size` bytes exceeds a memory limit."""
    if size > MOST_OF_ONE:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"a member brings {size} bytes, at most {MOST_OF_ONE} are allowed")
    if size > SMALL and size + sum(shared.group.size for shared in groups()) > MOST_OF_ALL:
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, f"all members together bring at most {MOST_OF_ALL} bytes")
