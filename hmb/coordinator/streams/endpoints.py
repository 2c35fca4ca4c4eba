"""Lists the address of each process in a streams group, with the partitions for which the process answers queries.

A process of a Kafka Streams application can answer queries about its states (*interactive queries*), for example about
the count of a word. Each process has only the states of its own tasks, so a query must go to the right process. The
response to a heartbeat therefore lists the address of each process, with the partitions that its tasks read.

For example, task 1_2 reads partition 2 of the topic "count-repartition", and runs in a process with the address
host-a:7070. The records of the word "sun" are in partition 2, so a query for the count of "sun" goes to host-a:7070.
"""

from __future__ import annotations

from collections.abc import Iterable

from hmb.coordinator.cluster_topics import ClusterTopics
from hmb.coordinator.streams.member import StreamsMember
from hmb.coordinator.streams.member_records import endpoint_of
from hmb.coordinator.streams.tasks import TaskId, numbers_by_subtopology
from hmb.coordinator.streams.topology import Topology, sources_of
from hmb.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse

EndpointToPartitions = StreamsGroupHeartbeatResponse.EndpointToPartitions


def endpoints_of(
    members: Iterable[StreamsMember], topology: Topology, topics: ClusterTopics
) -> list[EndpointToPartitions]:
    """Return each member's address, and the partitions that the member's tasks read.

    The result omits members without an address.
    """
    return [
        EndpointToPartitions(
            user_endpoint=endpoint,
            active_partitions=_partitions(member.assigned.active, topology, topics),
            standby_partitions=_partitions(member.assigned.standby, topology, topics),
        )
        for member in members
        if (endpoint := endpoint_of(member)) is not None
    ]


def _partitions(
    tasks: Iterable[TaskId], topology: Topology, topics: ClusterTopics
) -> list[EndpointToPartitions.TopicPartition]:
    sources = {each.subtopology_id: sources_of(each) for each in topology.subtopologies}
    return [
        EndpointToPartitions.TopicPartition(
            topic=name, partitions=[number for number in numbers if number < topic.partitions]
        )
        for subtopology, numbers in numbers_by_subtopology(tasks).items()
        for name in sources.get(subtopology, ())
        if (topic := topics.by_name(name)) is not None
    ]
