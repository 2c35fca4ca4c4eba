"""Describes a streams group for the response to StreamsGroupDescribe."""

from __future__ import annotations

from collections.abc import Iterable

from hmb.coordinator.streams.group import StreamsGroup
from hmb.coordinator.streams.member import StreamsMember
from hmb.coordinator.streams.member_records import endpoint_of, tags_of
from hmb.coordinator.streams.records import Subtopology
from hmb.coordinator.streams.tasks import TaskId, Tasks, task_ids
from hmb.coordinator.streams.topology import Topology
from hmb.protocol.messages.streams_group_describe import StreamsGroupDescribeResponse, TopicInfo
from hmb.protocol.messages.streams_group_heartbeat import KeyValue

DescribedStreamsGroup = StreamsGroupDescribeResponse.DescribedGroup
Member = DescribedStreamsGroup.Member
DescribedTopology = DescribedStreamsGroup.Topology


def describe_streams_group(group: StreamsGroup) -> DescribedStreamsGroup:
    """Return the state of a group, its topology, and its members with their current and target tasks.

    If all topics exist, the topology contains the number of partitions of each internal topic.
    """
    configured, topology = group.configured, group.state.topology
    is_ready = configured is not None and configured.is_ready
    internal = configured.internal if configured is not None and is_ready else {}
    return DescribedStreamsGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.state.epoch,
        assignment_epoch=group.state.assignment_epoch,
        topology=None
        if topology is None
        else _topology(topology, {name: topic.partitions for name, topic in internal.items()}),
        members=[
            _member(member, group.state.targets.get(member.member_id, Tasks()))
            for member in group.state.members.values()
        ],
    )


def _topology(topology: Topology, partitions: dict[str, int]) -> DescribedTopology:
    subtopologies = sorted(topology.subtopologies, key=lambda each: each.subtopology_id)
    return DescribedTopology(
        epoch=topology.epoch,
        subtopologies=[
            DescribedTopology.Subtopology(
                subtopology_id=each.subtopology_id,
                source_topics=sorted(each.source_topics),
                repartition_sink_topics=sorted(each.repartition_sink_topics),
                state_changelog_topics=_topics(each.state_changelog_topics, partitions),
                repartition_source_topics=_topics(each.repartition_source_topics, partitions),
            )
            for each in subtopologies
        ],
    )


def _topics(topics: Iterable[Subtopology.TopicInfo], partitions: dict[str, int]) -> list[TopicInfo]:
    return [
        TopicInfo(
            name=topic.name,
            partitions=partitions.get(topic.name, topic.partitions),
            replication_factor=topic.replication_factor,
            topic_configs=[KeyValue(key=config.key, value=config.value) for config in topic.topic_configs],
        )
        for topic in sorted(topics, key=lambda topic: topic.name)
    ]


def _member(member: StreamsMember, target: Tasks) -> Member:
    return Member(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=None,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=endpoint_of(member),
        client_tags=tags_of(member),
        assignment=_assignment(member.assigned.active, member.assigned.standby),
        target_assignment=_assignment(target.active, target.standby),
    )


def _assignment(active: Iterable[TaskId], standby: Iterable[TaskId]) -> Member.Assignment:
    return Member.Assignment(active_tasks=task_ids(active), standby_tasks=task_ids(standby))
