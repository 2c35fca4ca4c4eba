"""Describes a share group for the response to ShareGroupDescribe."""

from __future__ import annotations

from hmb.coordinator.cluster_topics import ClusterTopics
from hmb.coordinator.modern.partitions import named_partitions
from hmb.coordinator.share.assignor import SIMPLE
from hmb.coordinator.share.group import ShareGroup
from hmb.coordinator.share.member import ShareMember
from hmb.protocol.messages.share_group_describe import ShareGroupDescribeResponse

DescribedShareGroup = ShareGroupDescribeResponse.DescribedGroup
Member = DescribedShareGroup.Member


def describe_share_group(group: ShareGroup, topics: ClusterTopics) -> DescribedShareGroup:
    """Return the state of a group, and its members with their assignments."""
    return DescribedShareGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.state.epoch,
        assignment_epoch=group.state.assignment_epoch,
        assignor_name=SIMPLE,
        members=[_member(member, topics) for member in group.state.members.values()],
    )


def _member(member: ShareMember, topics: ClusterTopics) -> Member:
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        assignment=Member.Assignment(
            topic_partitions=named_partitions(member.assigned, topics, Member.Assignment.TopicPartitions)
        ),
    )
