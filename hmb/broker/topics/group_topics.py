"""Gives a group coordinator the names, ids and partition counts of the broker's topics.

To assign a topic's partitions, a coordinator must know their number.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from hmb.broker.topics.registry import Topics
from hmb.broker.topics.topic import Topic
from hmb.coordinator.cluster_topics import AssignableTopic
from hmb.protocol.errors import KafkaError


class GroupTopics:
    """The object through which a group coordinator reads the broker's topics. It implements `ClusterTopics`."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    @property
    def version(self) -> int:
        return self._topics.version

    def names(self) -> Iterable[str]:
        return [topic.name for topic in self._topics.all()]

    def by_name(self, name: str) -> AssignableTopic | None:
        topic = self._topics.get(name)
        return None if topic is None else _described(topic)

    def by_id(self, id: UUID) -> AssignableTopic | None:
        try:
            return _described(self._topics.find(None, id))
        except KafkaError:
            return None


def _described(topic: Topic) -> AssignableTopic:
    return AssignableTopic(topic.name, topic.id, len(topic.partitions))
