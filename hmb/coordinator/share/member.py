"""One member of a share group, and the values of the records that store it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hmb.coordinator.modern.member_epoch import fenced
from hmb.coordinator.modern.partitions import partitions_of, topics_of
from hmb.coordinator.share.group_records import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    ShareGroupTargetAssignmentMemberValue,
)
from hmb.protocol.enums import GroupType
from hmb.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from hmb.protocol.topics import PartitionId

CurrentPartitions = ShareGroupCurrentMemberAssignmentValue.TopicPartitions
TargetPartitions = ShareGroupTargetAssignmentMemberValue.TopicPartition


@dataclass(frozen=True, slots=True)
class ShareMember:
    """The state of one member. The object never changes: a change of the member creates a new object."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    epoch: int = 0
    previous_epoch: int = 0
    assigned: frozenset[PartitionId] = frozenset()

    def updated(self, request: ShareGroupHeartbeatRequest, client_id: str, client_host: str) -> ShareMember:
        """Return a copy of the member with the values of a heartbeat. A null field of the request changes nothing."""
        names = request.subscribed_topic_names
        return replace(
            self,
            rack_id=self.rack_id if request.rack_id is None else request.rack_id,
            client_id=client_id,
            client_host=client_host,
            topics=self.topics if names is None else frozenset(names),
        )

    def check_epoch(self, epoch: int) -> None:
        """Check the epoch in a heartbeat. Raises FENCED_MEMBER_EPOCH if the epoch is not valid.

        A member sends epoch 0 to join, and later its current epoch. Its previous epoch is also valid, because the
        response with the current epoch may have been lost.
        """
        if epoch not in (0, self.epoch, self.previous_epoch):
            raise fenced(GroupType.SHARE, epoch, self.epoch)

    @property
    def revocation_timeout(self) -> int | None:
        """Always None: several members may read one partition, so the coordinator never waits for a revocation."""
        return None

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.epoch == epoch

    def moved(self, epoch: int, assigned: frozenset[PartitionId]) -> ShareMember:
        """Return a copy of the member with a new epoch and a new assignment."""
        return replace(self, epoch=epoch, previous_epoch=self.epoch, assigned=assigned)


def metadata_value(member: ShareMember) -> ShareGroupMemberMetadataValue:
    """Return the value of the record that contains the subscription of a member."""
    return ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
    )


def with_metadata(member: ShareMember, value: ShareGroupMemberMetadataValue) -> ShareMember:
    """Return a copy of the member with the subscription from a record."""
    return replace(
        member,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topics=frozenset(value.subscribed_topic_names),
    )


def current_value(member: ShareMember) -> ShareGroupCurrentMemberAssignmentValue:
    """Return the value of a member's journal record. The value contains the member's epoch and assignment."""
    return ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        assigned_partitions=topics_of(CurrentPartitions, member.assigned),
    )


def with_current(member: ShareMember, value: ShareGroupCurrentMemberAssignmentValue) -> ShareMember:
    """Return a copy of the member with the epoch and the assignment from a record."""
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        assigned=partitions_of(value.assigned_partitions),
    )


def target_value(target: frozenset[PartitionId]) -> ShareGroupTargetAssignmentMemberValue:
    """Return the value of the record that contains the target assignment of a member."""
    return ShareGroupTargetAssignmentMemberValue(topic_partitions=topics_of(TargetPartitions, target))


def target_of(value: ShareGroupTargetAssignmentMemberValue) -> frozenset[PartitionId]:
    """Return the target assignment from the value of a record."""
    return partitions_of(value.topic_partitions)
