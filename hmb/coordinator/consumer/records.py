"""Converts members of KIP-848 groups to the values of journal records, and converts these values to members again.

The journal stores a group as many small records (modern/state.py). Each member has three of these records: its
subscription, its target assignment and its current assignment. A small change of the group therefore writes
little. For example, if one of a thousand members gives up a partition, the coordinator writes only a new
current assignment of this member.

Source: KIP-848; Kafka's `GroupCoordinatorRecordHelpers`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hmb.coordinator.consumer.classic_metadata import ClassicMetadata
from hmb.coordinator.consumer.member import ConsumerMember, Owned
from hmb.coordinator.consumer.states import MemberState
from hmb.coordinator.journal.records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupTargetAssignmentMemberValue,
)
from hmb.coordinator.modern.partitions import by_topic, partitions_of, topics_of
from hmb.protocol.topics import PartitionId

ClassicMemberMetadata = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata
CurrentPartitions = ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions
TargetPartitions = ConsumerGroupTargetAssignmentMemberValue.TopicPartition


def metadata_value(member: ConsumerMember) -> ConsumerGroupMemberMetadataValue:
    """Return the value of the record that contains the subscription of a member."""
    return ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout,
        server_assignor=member.assignor,
        classic_member_metadata=None if member.classic is None else _classic_value(member.classic),
    )


def current_value(member: ConsumerMember) -> ConsumerGroupCurrentMemberAssignmentValue:
    """Return the value of the record that contains the epoch and the current assignment of a member."""
    return ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_topics_with_epochs(member.assigned),
        partitions_pending_revocation=_topics_with_epochs(member.revoking),
    )


def target_value(target: Iterable[PartitionId]) -> ConsumerGroupTargetAssignmentMemberValue:
    """Return the value of the record that contains the target assignment of a member."""
    return ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topics_of(TargetPartitions, target))


def target_of(value: ConsumerGroupTargetAssignmentMemberValue) -> frozenset[PartitionId]:
    """Return the target assignment from the value of a record."""
    return partitions_of(value.topic_partitions)


def with_metadata(member: ConsumerMember, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
    """Return a copy of the member. The copy's subscription comes from a record."""
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topics=frozenset(value.subscribed_topic_names),
        regex=value.subscribed_topic_regex or "",
        rebalance_timeout=value.rebalance_timeout_ms,
        assignor=value.server_assignor,
        classic=_classic_metadata(value.classic_member_metadata),
    )


def with_current(member: ConsumerMember, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember:
    """Return a copy of the member with the epoch and the assignment from a record.

    Raises ValueError if the record contains an unknown member state, for example a state of newer brokers.
    """
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state),
        assigned=_owned(value.assigned_partitions, value.member_epoch),
        revoking=_owned(value.partitions_pending_revocation, value.member_epoch),
    )


def _classic_value(classic: ClassicMetadata) -> ClassicMemberMetadata:
    return ClassicMemberMetadata(
        session_timeout_ms=classic.session_timeout,
        supported_protocols=[
            ClassicMemberMetadata.ClassicProtocol(name=name, metadata=metadata) for name, metadata in classic.protocols
        ],
    )


def _classic_metadata(value: ClassicMemberMetadata | None) -> ClassicMetadata | None:
    if value is None:
        return None
    protocols = [(protocol.name, bytes(protocol.metadata)) for protocol in value.supported_protocols]
    return ClassicMetadata(value.session_timeout_ms, protocols)


def _topics_with_epochs(owned: Owned) -> list[CurrentPartitions]:
    return [
        CurrentPartitions(
            topic_id=topic,
            partitions=numbers,
            assignment_epochs=[owned[PartitionId(topic, number)] for number in numbers],
        )
        for topic, numbers in by_topic(owned).items()
    ]


def _owned(topics: Iterable[CurrentPartitions], member_epoch: int) -> Owned:
    """Return a dict: each partition in a record -> the epoch in which the member received the partition.

    Kafka brokers older than version 4.3 do not store these epochs. For their records, the dict contains
    `member_epoch`, the member's epoch in the same record.

    The value `member_epoch` can be too large. For example, it is 7, but the member received the partition in
    epoch 5. The broker then rejects valid commits with the epochs 5 and 6.
    """
    owned: dict[PartitionId, int] = {}
    for topic in topics:
        epochs = topic.assignment_epochs or [member_epoch] * len(topic.partitions)
        owned.update(
            (PartitionId(topic.topic_id, number), epoch) for number, epoch in zip(topic.partitions, epochs, strict=True)
        )
    return owned
