"""Describes a KIP-848 group for the response to ConsumerGroupDescribe."""

from __future__ import annotations

from collections.abc import Iterable

from hmb.coordinator.cluster_topics import ClusterTopics
from hmb.coordinator.consumer.group import ConsumerGroup
from hmb.coordinator.consumer.member import ConsumerMember
from hmb.coordinator.modern.partitions import named_partitions
from hmb.protocol.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from hmb.protocol.topics import PartitionId

DescribedConsumerGroup = ConsumerGroupDescribeResponse.DescribedGroup
Member = DescribedConsumerGroup.Member
CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1  # the member types: which protocol the member uses


def describe_consumer_group(group: ConsumerGroup, topics: ClusterTopics) -> DescribedConsumerGroup:
    """Return the state of a group, and its members with their current and target assignments."""
    return DescribedConsumerGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.state.epoch,
        assignment_epoch=group.state.assignment_epoch,
        assignor_name=group.assignor,
        members=[
            _member(member, group.state.targets.get(member.member_id, frozenset()), topics)
            for member in group.state.members.values()
        ],
    )


def _member(member: ConsumerMember, target: Iterable[PartitionId], topics: ClusterTopics) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment([*member.assigned, *member.revoking], topics),
        target_assignment=_assignment(target, topics),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _assignment(partitions: Iterable[PartitionId], topics: ClusterTopics) -> Member.Assignment:
    named = named_partitions(partitions, topics, Member.Assignment.TopicPartitions)
    return Member.Assignment(topic_partitions=named)
