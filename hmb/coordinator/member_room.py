"""The memory that members of groups may take with what they bring: their metadata, or their subscriptions.

Kafka bounds the number of members only (`group.max.size`). A member may bring as much as a request can hold, and the
coordinator keeps it as long as the member's session lasts. HMB refuses a member whose part of the group's record could
never be written, and members that take too much memory together with those of all other groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hmb.coordinator.shared_group import SharedGroup
from hmb.protocol.errors import ErrorCode, KafkaError

MOST_OF_ONE = 1_000_000  # bytes: the group's record has at most max.message.bytes, 1,048,588 by default
MOST_OF_ALL = 48 * 1024 * 1024  # bytes
SMALL = 4096  # bytes: a member that brings no more is taken without a look at all others


def check_room(size: int, groups: Callable[[], Iterable[SharedGroup]]) -> None:
    """Raise INVALID_REQUEST or GROUP_MAX_SIZE_REACHED if there is no room for a member that brings `size` bytes."""
    if size > MOST_OF_ONE:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"a member brings {size} bytes, at most {MOST_OF_ONE} are allowed")
    if size > SMALL and size + sum(shared.group.size for shared in groups()) > MOST_OF_ALL:
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, f"all members together bring at most {MOST_OF_ALL} bytes")
