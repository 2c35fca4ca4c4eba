"""The topology of a Kafka Streams application: the parts that run as tasks, and the topics between them.

The first member of a group sends the topology, and the group stores it in a record (`StreamsGroupTopologyValue`). The
functions of this module read this record. For example, `sources_of` returns the topics that a part of the application
reads.

A subtopology has topics of four kinds:
    source topics                the input of the application; they must exist
    repartition source topics    internal topics that the subtopology reads
    repartition sink topics      internal topics that the subtopology writes, for another subtopology
    state changelog topics       internal topics that contain the changes of the subtopology's state

For example, a word count reads lines and counts the words in them. Subtopology "0" reads the topic "lines" and writes
each word to the repartition topic "count-repartition". All records of one word are then in the same partition, so one
task can count them. Subtopology "1" reads "count-repartition" and counts the words. It stores the counts in the
changelog topic "count-changelog".

Source: KIP-1071; Kafka's `StreamsTopology`.
"""

from __future__ import annotations

from collections.abc import Iterable

from hmb.coordinator.journal.records import encode_value
from hmb.coordinator.streams.records import StreamsGroupTopologyValue, Subtopology
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest

Topology = StreamsGroupTopologyValue


def invalid_topology(why: str) -> KafkaError:
    """Return the error for a topology that can never run."""
    return KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, why)


def topology_of(request: StreamsGroupHeartbeatRequest.Topology) -> Topology:
    """Convert the topology in a heartbeat request to the value of a record, so that the group can store it."""
    return Topology(epoch=request.epoch, subtopologies=request.subtopologies)


def size_of(topology: Topology | None) -> int:
    """Return the size of the topology's record in bytes."""
    return 0 if topology is None else len(encode_value(topology))


def is_same(one: Topology, other: Topology) -> bool:
    """Return whether two topologies are equal. The order of the subtopologies does not matter."""

    def by_id(topology: Topology) -> list[Subtopology]:
        return sorted(topology.subtopologies, key=lambda each: each.subtopology_id)

    return one.epoch == other.epoch and by_id(one) == by_id(other)


def sources_of(subtopology: Subtopology) -> list[str]:
    """Return the names of all topics that a subtopology reads."""
    return [*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics)]


def internal_topics_of(subtopology: Subtopology) -> list[Subtopology.TopicInfo]:
    """Return the internal topics that must exist before the subtopology can run."""
    return [*subtopology.repartition_source_topics, *subtopology.state_changelog_topics]


def all_topics(subtopologies: Iterable[Subtopology]) -> frozenset[str]:
    """Return the names of all topics that must exist before the application can run."""
    return frozenset(
        name
        for each in subtopologies
        for name in (*sources_of(each), *(topic.name for topic in each.state_changelog_topics))
    )


def reader_of(topology: Topology, topic: str) -> str | None:
    """Return the id of the subtopology that reads a topic, or None if no subtopology reads it."""
    return next((each.subtopology_id for each in topology.subtopologies if topic in sources_of(each)), None)
