"""Converts the error codes of a group's coordinator to exceptions, with an explanation and advice for the user."""

from __future__ import annotations

from hmb.client.coordinator import MOVED
from hmb.client.errors import response_error
from hmb.client.group.interface import MemberSettings
from hmb.protocol.errors import ErrorCode, KafkaError

TRY_AGAIN = MOVED | {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
FENCED_CODES = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})  # the member has to join again
REJOIN = "poll again, and commit only what was read since"

_WHY = {
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: (
        "its members use another protocol, or none of the assignors {settings.assignors}; give this consumer one that"
        " they know"
    ),
    ErrorCode.INVALID_SESSION_TIMEOUT: (
        "the broker does not allow a session timeout of {settings.session_timeout:g} s; choose one between its"
        " group.min.session.timeout.ms and group.max.session.timeout.ms"
    ),
    ErrorCode.FENCED_INSTANCE_ID: (
        "another consumer has joined as group_instance_id {settings.group_instance_id!r}; each needs its own"
    ),
    ErrorCode.UNRELEASED_INSTANCE_ID: (
        "another consumer is a member as group_instance_id {settings.group_instance_id!r}; close it, or wait until its"
        " session has ended"
    ),
    ErrorCode.GROUP_MAX_SIZE_REACHED: "it is full; the broker's group.max.size limits the number of members",
    ErrorCode.UNSUPPORTED_ASSIGNOR: "the broker has no assignor {settings.remote_assignor!r}",
    ErrorCode.ILLEGAL_GENERATION: (
        "the group has rebalanced without this consumer, and other members may read its partitions now; nothing was"
        f" committed. {REJOIN.capitalize()}. If that happens often: poll more often than every"
        " {settings.max_poll_interval:g} s (max_poll_interval), or take fewer records at once"
    ),
    ErrorCode.REBALANCE_IN_PROGRESS: f"the group is rebalancing; nothing was committed. {REJOIN.capitalize()}",
    ErrorCode.GROUP_ID_NOT_FOUND: "the group does not exist, or it was deleted",
}
_WHY[ErrorCode.UNKNOWN_MEMBER_ID] = _WHY[ErrorCode.STALE_MEMBER_EPOCH] = _WHY[ErrorCode.ILLEGAL_GENERATION]
_WHY[ErrorCode.FENCED_MEMBER_EPOCH] = _WHY[ErrorCode.ILLEGAL_GENERATION]


def group_error(settings: MemberSettings, number: int, message: str | None = None) -> KafkaError:
    """Return the exception for an error code. `message` is the error message in the response, or None."""
    why = _WHY[ErrorCode(number)].format(settings=settings) if number in _WHY else message
    return response_error(f"group {settings.group_id!r}", number, why)
