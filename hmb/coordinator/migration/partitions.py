"""Converts partitions between the two protocols: the classic protocol uses topic names, and KIP-848 uses topic ids.

For example, the leader of a classic group has assigned partition 0 of topic "weather" to a member. After an upgrade,
the KIP-848 group stores this partition as a `PartitionId` with the id of "weather". The functions of this module omit
the partitions of topics that do not exist any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from hmb.coordinator.cluster_topics import ClusterTopics
from hmb.coordinator.modern.partitions import by_topic
from hmb.protocol.consumer_protocol import ConsumerProtocolAssignment
from hmb.protocol.topics import PartitionId


class NamedPartitions(Protocol):
    """The name of a topic and a list of its partition numbers, from a subscription or an assignment."""

    topic: str
    partitions: list[int]


def ids_of(named: Iterable[NamedPartitions], topics: ClusterTopics) -> frozenset[PartitionId]:
    """Return the given partitions with topic ids instead of topic names. Omit topics that do not exist."""
    return frozenset(
        PartitionId(topic.id, number)
        for each in named
        if (topic := topics.by_name(each.topic)) is not None
        for number in each.partitions
    )


def encode_assignment(partitions: Iterable[PartitionId], version: int, topics: ClusterTopics) -> bytes:
    """Return the bytes of an assignment that a member with the classic protocol receives."""
    assigned = [
        ConsumerProtocolAssignment.TopicPartition(topic=topic.name, partitions=numbers)
        for id, numbers in by_topic(partitions).items()
        if (topic := topics.by_id(id)) is not None
    ]
    return ConsumerProtocolAssignment(assigned_partitions=assigned).versioned(version)
