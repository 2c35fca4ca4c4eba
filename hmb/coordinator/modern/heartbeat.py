"""The checks that the heartbeats of KIP-848 groups, share groups and streams groups have in common.

The error messages and the order of the checks are the same as in Kafka's class `GroupMetadataManager`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from hmb.protocol.errors import ErrorCode, KafkaError

NO_REBALANCE_TIMEOUT = "RebalanceTimeoutMs must be provided in first request."
INVALID_EPOCH = "MemberEpoch is invalid."
NO_INSTANCE_ID = "InstanceId can't be null."


class MemberHeartbeat(Protocol):
    """The fields that the heartbeats of KIP-848 groups, share groups and streams groups have in common."""

    member_id: str
    group_id: str
    rack_id: str | None


def empty_fields(
    request: MemberHeartbeat, instance_id: str | None = None, *, needs_member_id: bool = True
) -> dict[str, bool]:
    """Return a dict: error message -> whether the heartbeat has the mistake that the message describes.

    For example, the key "GroupId can't be empty." has the value True if the group id is empty. A missing
    instance id or rack id (None) is no mistake.

    If `needs_member_id` is False, an empty member id is no mistake, because older consumers send no member id
    in their first heartbeat.
    """
    return {
        "MemberId can't be empty.": needs_member_id and not request.member_id.strip(),
        "GroupId can't be empty.": not request.group_id.strip(),
        "InstanceId can't be empty.": _is_blank(instance_id),
        "RackId can't be empty.": _is_blank(request.rack_id),
    }


def _is_blank(text: str | None) -> bool:
    return text is not None and not text.strip()


def check_problems(problems: Mapping[str, bool]) -> None:
    """Raise INVALID_REQUEST for the first true value in `problems`. The key of this value is the error message."""
    for problem, is_there in problems.items():
        if is_there:
            raise KafkaError(ErrorCode.INVALID_REQUEST, problem)
