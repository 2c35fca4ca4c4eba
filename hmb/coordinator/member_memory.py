"""Limits how much memory group members can use for their metadata and their subscriptions.

Kafka limits only the number of members (`group.max.size`). A member can send as much metadata as fits into a request,
and the coordinator stores this metadata until the member's session ends. HMB therefore rejects a new member in two
cases: if its metadata is too large for one record, or if the metadata of all members of all groups would exceed a
limit.

For example, a client joins a group with 2 MB of metadata. A record has at most about 1 MB, so this metadata does not
fit into a record. The broker rejects the client with the error INVALID_REQUEST.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from sys import getsizeof

from hmb.coordinator.group_runner import GroupRunner
from hmb.protocol.errors import ErrorCode, KafkaError

MAX_MEMBER_SIZE = 1_000_000  # bytes; more would not fit into one record (max.message.bytes)
MAX_TOTAL_SIZE = 48 * 1024 * 1024  # bytes: the limit for the metadata of all members of all groups together
SMALL = 4096  # bytes; the broker checks MAX_TOTAL_SIZE only for a member with more metadata than this


def check_memory(size: int, groups: Callable[[], Iterable[GroupRunner]]) -> None:
    """Check that a member may store `size` more bytes of metadata. The function `groups` returns all groups.

    In two cases, raise an error:

    - INVALID_REQUEST: `size` is greater than MAX_MEMBER_SIZE.
    - GROUP_MAX_SIZE_REACHED: `size` is greater than SMALL, and the members of all groups together would then have
      more than MAX_TOTAL_SIZE bytes.
    """
    if size > MAX_MEMBER_SIZE:
        why = f"the metadata of the member has {size} bytes; the limit is {MAX_MEMBER_SIZE} bytes"
        raise KafkaError(ErrorCode.INVALID_REQUEST, why)
    if size > SMALL and size + sum(runner.machine.size for runner in groups()) > MAX_TOTAL_SIZE:
        why = f"the metadata of all members together would be larger than {MAX_TOTAL_SIZE} bytes"
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, why)


def subscription_size(topics: Iterable[str], regex: str | None) -> int:
    """Return the approximate memory that a subscription uses, in bytes."""
    return sum(map(getsizeof, topics)) + len(regex or "")
