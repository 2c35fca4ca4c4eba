"""Checks StreamsGroupHeartbeat requests, and reads the tasks that the sender owns."""

from __future__ import annotations

from collections import Counter

from hmb.coordinator.modern.heartbeat import NO_INSTANCE_ID, NO_REBALANCE_TIMEOUT, check_problems, empty_fields
from hmb.coordinator.streams.tasks import Tasks, tasks_in
from hmb.coordinator.streams.topology import invalid_topology
from hmb.protocol.enums import JOIN_EPOCH, STATIC_LEAVE_EPOCH
from hmb.protocol.errors import KafkaError
from hmb.protocol.messages.streams_group_describe import StreamsGroupDescribeResponse
from hmb.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from hmb.protocol.topics import INTERNAL_TOPICS, check_topic_name

DescribedTopology = StreamsGroupDescribeResponse.DescribedGroup.Topology
RequestedTopology = StreamsGroupHeartbeatRequest.Topology
RequestedSubtopology = RequestedTopology.Subtopology


def check_heartbeat(request: StreamsGroupHeartbeatRequest) -> None:
    """Check the fields of a heartbeat. Raises INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY.

    Like Kafka 4.3, the broker refuses static members, warm-up tasks, offsets of tasks, and regular expressions.
    """
    if request.topology is not None:
        _check_names(request.topology)
    epoch, joins = request.member_epoch, request.member_epoch == JOIN_EPOCH
    tasks = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    subtopologies = [] if request.topology is None else request.topology.subtopologies
    problems = {
        "Static membership is not yet supported.": request.instance_id is not None,
        "TaskOffsets are not supported yet.": request.task_offsets is not None,
        "TaskEndOffsets are not supported yet.": request.task_end_offsets is not None,
        "WarmupTasks are not supported yet.": bool(request.warmup_tasks),
        "Regular expressions for source topics are not supported yet.": any(
            each.source_topic_regex for each in subtopologies
        ),
        **empty_fields(request),
        NO_REBALANCE_TIMEOUT: joins and request.rebalance_timeout_ms == -1,
        "ActiveTasks must be empty when (re-)joining.": joins and request.active_tasks != [],
        "StandbyTasks must be empty when (re-)joining.": joins and request.standby_tasks != [],
        "WarmupTasks must be empty when (re-)joining.": joins and request.warmup_tasks != [],
        "Topology must be non-null when (re-)joining.": joins and request.topology is None,
        NO_INSTANCE_ID: epoch == STATIC_LEAVE_EPOCH,
        f"MemberEpoch is {epoch}, but must be greater than or equal to -2.": epoch < STATIC_LEAVE_EPOCH,
        "If one task-type is non-null, all must be non-null.": None in tasks and tasks != (None, None, None),
        "Topology can only be provided when (re-)joining.": not joins and request.topology is not None,
    }
    check_problems(problems)
    if request.topology is not None:
        _check_topology(request.topology)


def topics_of(topology: RequestedTopology | DescribedTopology) -> list[str]:
    """Return the names of all topics in a topology, without duplicates."""
    names = (
        name
        for each in topology.subtopologies or ()
        for name in (
            *each.source_topics,
            *each.repartition_sink_topics,
            *(topic.name for topic in (*each.repartition_source_topics, *each.state_changelog_topics)),
        )
    )
    return list(dict.fromkeys(names))


def owned_by(request: StreamsGroupHeartbeatRequest) -> Tasks | None:
    """Return the tasks that the member owns according to its heartbeat.

    None means that the heartbeat does not list tasks, because they are the same as in the previous heartbeat.
    """
    if request.active_tasks is None or request.standby_tasks is None:
        return None
    return Tasks(tasks_in(request.active_tasks), tasks_in(request.standby_tasks))


def _check_names(topology: RequestedTopology) -> None:
    names = topics_of(topology)
    if internal := [name for name in names if name in INTERNAL_TOPICS]:
        named = ",".join(internal)
        raise invalid_topology(f"Use of Kafka internal topics {named} in a Kafka Streams topology is prohibited.")
    if illegal := [name for name in names if not _is_legal(name)]:
        raise invalid_topology(f"Topic names {','.join(illegal)} are not valid topic names.")


def _is_legal(name: str) -> bool:
    try:
        check_topic_name(name)
    except KafkaError:
        return False
    return True


def _check_topology(topology: RequestedTopology) -> None:
    """Check the topology that a Kafka Streams application sends. Raises STREAMS_INVALID_TOPOLOGY."""
    if topology.epoch < 0:
        raise invalid_topology(f"The topology epoch is {topology.epoch}, but must not be negative.")
    times = Counter(each.subtopology_id for each in topology.subtopologies)
    if repeated := [name for name, count in times.items() if count > 1]:
        raise invalid_topology(f"The topology contains subtopology {repeated[0]} twice.")
    for each in topology.subtopologies:
        for topic in each.state_changelog_topics:
            if topic.partitions:
                raise invalid_topology(
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set to "
                    f"{topic.partitions}."
                )
        for topic in each.repartition_source_topics:
            if topic.partitions < 0:
                raise invalid_topology(f"Repartition topic {topic.name} has {topic.partitions} partitions.")
        _check_copartition_groups(each)


def _check_copartition_groups(subtopology: RequestedSubtopology) -> None:
    sources, repartition = len(subtopology.source_topics), len(subtopology.repartition_source_topics)
    for group in subtopology.copartition_groups:
        numbers = [(number, sources) for number in group.source_topics]
        numbers += [(number, repartition) for number in group.repartition_source_topics]
        if any(not 0 <= number < count for number, count in numbers):
            what = f"A copartition group of subtopology {subtopology.subtopology_id}"
            raise invalid_topology(f"{what} names an unknown topic.")
