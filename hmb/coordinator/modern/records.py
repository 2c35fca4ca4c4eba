"""How a KIP-848 group is written down: a few small records, so that a change of one member is one of them.

    group               the group's epoch, and the hash of the topics that it reads
    member              who it is and what it subscribes to
    target metadata     for which epoch of the group the target assignment was made, and when
    target              what one member is to own
    current             what one member owns and is to give up, with its epoch
    regular expression  the topics that it matched, and when that was

A record is `(key, value)`, None for a value that is gone.

Source: KIP-848; Kafka's `GroupCoordinatorRecordHelpers`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

from hmb.coordinator.cluster_topics import PartitionId
from hmb.coordinator.journal.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    Key,
    KeyAndValue,
    Value,
    encode_key,
    encode_value,
)
from hmb.coordinator.modern.member import ConsumerMember, Owned
from hmb.coordinator.modern.states import MemberState

CurrentPartitions = ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions
TargetPartitions = ConsumerGroupTargetAssignmentMemberValue.TopicPartition


def encode(key: Key, value: Value | None) -> KeyAndValue:
    return encode_key(key), None if value is None else encode_value(value)


def member_record(group_id: str, member: ConsumerMember) -> KeyAndValue:
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout,
        server_assignor=member.assignor,
        classic_member_metadata=None,
    )
    return encode(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def current_record(group_id: str, member: ConsumerMember) -> KeyAndValue:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_topics_with_epochs(member.assigned),
        partitions_pending_revocation=_topics_with_epochs(member.revoking),
    )
    return encode(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def target_record(group_id: str, member_id: str, target: Iterable[PartitionId]) -> KeyAndValue:
    partitions = [TargetPartitions(topic_id=topic, partitions=numbers) for topic, numbers in by_topic(target).items()]
    value = ConsumerGroupTargetAssignmentMemberValue(topic_partitions=partitions)
    return encode(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def tombstones_of_member(group_id: str, member_id: str) -> list[KeyAndValue]:
    """Return the tombstones of a member in the order that Kafka requires."""
    named = {"group_id": group_id, "member_id": member_id}
    return [
        encode(ConsumerGroupCurrentMemberAssignmentKey(**named), None),
        encode(ConsumerGroupTargetAssignmentMemberKey(**named), None),
        encode(ConsumerGroupMemberMetadataKey(**named), None),
    ]


def with_metadata(member: ConsumerMember, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
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
    )


def with_current(member: ConsumerMember, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember:
    """Raises ValueError for a state that a newer broker may know."""
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state),
        assigned=_owned(value.assigned_partitions, value.member_epoch),
        revoking=_owned(value.partitions_pending_revocation, value.member_epoch),
    )


def target_of(value: ConsumerGroupTargetAssignmentMemberValue) -> frozenset[PartitionId]:
    return frozenset(
        PartitionId(topic.topic_id, number) for topic in value.topic_partitions for number in topic.partitions
    )


def by_topic(partitions: Iterable[PartitionId]) -> dict[UUID, list[int]]:
    """The numbers of each topic's partitions, sorted."""
    topics: dict[UUID, list[int]] = defaultdict(list)
    for topic_id, number in sorted(partitions):
        topics[topic_id].append(number)
    return topics


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
    """Before Kafka 4.3 there were no epochs of partitions: they are at most the member's."""
    owned: dict[PartitionId, int] = {}
    for topic in topics:
        epochs = topic.assignment_epochs or [member_epoch] * len(topic.partitions)
        owned.update(
            (PartitionId(topic.topic_id, number), epoch) for number, epoch in zip(topic.partitions, epochs, strict=True)
        )
    return owned
