"""Converts an assignment between its form in memory and its form in records, requests and responses.

In memory, a group stores an assignment as a set of `PartitionId`. A record, a request or a response contains one object
for each topic, with the topic id and the numbers of the partitions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar
from uuid import UUID

from hmb.coordinator.cluster_topics import ClusterTopics
from hmb.protocol.topics import PartitionId

T = TypeVar("T")


class TopicWithPartitions(Protocol):
    """One topic in a record or in a message: the topic id, and partition numbers such as [0, 2]."""

    topic_id: UUID
    partitions: list[int]


def partitions_of(topics: Iterable[TopicWithPartitions]) -> frozenset[PartitionId]:
    """Return the set of all partitions in `topics`. Each item of `topics` has a topic id and partition numbers."""
    return frozenset(PartitionId(topic.topic_id, number) for topic in topics for number in topic.partitions)


def topics_of(kind: Callable[..., T], partitions: Iterable[PartitionId]) -> list[T]:
    """Return one object of the class `kind` for each topic, with the topic id and the partition numbers."""
    return [kind(topic_id=topic, partitions=numbers) for topic, numbers in by_topic(partitions).items()]


def by_topic(partitions: Iterable[PartitionId]) -> dict[UUID, list[int]]:
    """Return the partitions as a mapping from topic id to sorted partition numbers."""
    topics: dict[UUID, list[int]] = defaultdict(list)
    for topic_id, number in sorted(partitions):
        topics[topic_id].append(number)
    return topics


def named_partitions(
    partitions: Iterable[PartitionId], topics: ClusterTopics, make: Callable[..., T]
) -> list[T]:
    """Return an object for each topic, with topic id, topic name and partition numbers.

    The parameter `make` is the objects' class. Omit deleted topics, because the broker no longer knows their names.
    """
    return [
        make(topic_id=id, topic_name=topic.name, partitions=numbers)
        for id, numbers in by_topic(partitions).items()
        if (topic := topics.by_id(id)) is not None
    ]
