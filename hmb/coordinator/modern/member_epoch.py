"""Checks of the member epoch in a request, for all modern groups.

Each request of a group member contains a member epoch. If the coordinator has stored another epoch for this
member, the member has missed a change of its assignment, or two clients use the same member id.

The error messages are Kafka's.
"""

from __future__ import annotations

from hmb.coordinator.group import Commit
from hmb.protocol.enums import GroupType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.offset_commit import OffsetCommitRequest


def check_fetch_epoch(epoch: int, known: int) -> None:
    """Raise STALE_MEMBER_EPOCH if a member fetches committed offsets with a wrong member epoch.

    `epoch` is the member epoch in the request. `known` is the member epoch that the coordinator has stored.
    """
    if epoch != known:
        raise KafkaError(
            ErrorCode.STALE_MEMBER_EPOCH,
            f"The received member epoch {epoch} does not match the expected member epoch {known}.",
        )


def fenced(group_type: GroupType, epoch: int, known: int) -> KafkaError:
    """Return the error FENCED_MEMBER_EPOCH for a heartbeat with a wrong member epoch.

    `epoch` is the member epoch in the heartbeat. `known` is the member epoch that the coordinator has stored.
    """
    relation = "greater" if epoch > known else "smaller"
    return KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The {group_type.value} group member has a {relation} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({known}). The member must abandon all its partitions and rejoin.",
    )


def check_commit_version(group_type: GroupType, commit: Commit) -> None:
    """Raise UNSUPPORTED_VERSION if the version of a commit request is too old to contain a member epoch."""
    if commit.producer is None and commit.version < OffsetCommitRequest.FIRST_VERSION_OF_EPOCHS:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"OffsetCommit version 9 or above must be used by members using the {group_type.value} group protocol",
        )
