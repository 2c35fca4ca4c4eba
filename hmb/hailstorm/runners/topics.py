"""Finds the partitions that a topology reads, and detects topics that change while the topology runs."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from hmb.client import Admin, ConnectionFailed, KafkaError, TopicPartition
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.errors import SnapshotError, TopologyError
from hmb.hailstorm.snapshots import SnapshotStore
from hmb.hailstorm.topology import Processors, Topology

LOGGER = logging.getLogger(__name__)
NO_ID = "00000000-0000-0000-0000-000000000000"  # Brokers older than Kafka 2.8 return this id for every topic.


class SourceTopics:
    """The topics that the spouts read, with the ids and the partitions that they had at the start of the topology."""

    def __init__(
        self, bootstrap_servers: str, topology: Topology, security: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Request the ids and the partitions of the topics. Raises TopologyError if a topic does not exist."""
        self._servers, self._security = bootstrap_servers, security
        self._names = sorted(spout.topic for spout in topology.spouts.values())
        found = self._describe()
        self.partitions = {name: numbers for name, (_, numbers) in found.items()}
        self.ids = {name: topic_id for name, (topic_id, _) in found.items()}

    def warn_of_empty(self) -> None:
        """Log a warning for each topic without records. The user may have written a wrong topic name."""
        partitions = [TopicPartition(name, number) for name, numbers in self.partitions.items() for number in numbers]
        with Admin(self._servers, security=self._security) as admin:
            ends = admin.list_offsets(dict.fromkeys(partitions, "latest"))
        filled = {each.topic for each, end in ends.items() if isinstance(end, KafkaError) or end.offset > 0}
        for name in self._names:
            if name not in filled:
                LOGGER.warning("the topic %s has no records, so its spout has nothing to read", name)

    def check(self) -> None:
        """Raise TopologyError if a topic has changed since the topology started.

        A topic has changed if it was deleted or created again, or if partitions were added.
        """
        for name, (topic_id, numbers) in self._describe(" any more").items():
            if topic_id != self.ids[name]:
                raise TopologyError(
                    f"the topic {name} was created again while the topology read it. "
                    "Use an empty snapshot store to read it from its beginning"
                )
            if numbers != self.partitions[name]:
                raise TopologyError(
                    f"the topic {name} has {len(numbers)} partitions, but it had {len(self.partitions[name])} when the "
                    "topology started. Start the topology again: then it reads the new partitions from their beginning"
                )

    def fingerprint(self, processors: Processors) -> dict[str, Any]:
        """Return a description of the topology: its shape, and the ids of the topics that it reads.

        A snapshot store saves this description, and refuses a topology with another description. For example, a topic
        that was deleted and created again has a different id. Brokers older than Kafka 2.8 have no topic ids.
        """
        shape = processors.fingerprint()
        known = {name: topic_id for name, topic_id in self.ids.items() if topic_id != NO_ID}
        topics = {f"topic {name}": {"id": topic_id} for name, topic_id in known.items()}
        return {**shape, "nodes": {**shape["nodes"], **topics}}

    def _describe(self, since: str = "") -> dict[str, tuple[str, list[int]]]:
        with Admin(self._servers, security=self._security) as admin:
            described = admin.describe_topics(self._names)
        found = {}
        for name, topic in described.items():
            if isinstance(topic, KafkaError):
                raise TopologyError(f"the topic {name} cannot be read{since}: {topic.message}") from topic
            found[name] = str(topic.topic_id), sorted(_numbers(topic.partitions))
        return found


def _numbers(partitions: Iterable[Any]) -> list[int]:
    return [each.partition for each in partitions]


class CheckedStore:
    """A snapshot store that checks the topics before it marks a snapshot as complete.

    If a topic is deleted and created again while the topology runs, a snapshot can mix data of the old topic and
    the new topic. The method `complete` then raises TopologyError, and does not mark the snapshot.
    """

    def __init__(self, store: SnapshotStore, topics: SourceTopics) -> None:
        self._store, self._topics = store, topics

    def begin_epoch(self) -> int:
        return self._store.begin_epoch()

    def completed(self) -> Clock | None:
        return self._store.completed()

    def complete(self, epoch: int, clock: Clock) -> None:
        """Check the topics, and then record the snapshot as complete.

        Raises TopologyError if a topic has changed, and SnapshotError if no broker answers.
        """
        try:
            self._topics.check()
        except (ConnectionFailed, KafkaError, TimeoutError) as error:
            raise SnapshotError(f"the topics cannot be checked: {error}") from error
        self._store.complete(epoch, clock)
