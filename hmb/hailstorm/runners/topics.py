"""The topics of a topology: how many partitions they have, and whether they are still the same topics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hmb.client import Admin, ConnectionFailed, KafkaError
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.errors import SnapshotError, TopologyError
from hmb.hailstorm.snapshots import SnapshotStore
from hmb.hailstorm.topology import Processors, Topology

NO_ID = "00000000-0000-0000-0000-000000000000"  # of brokers before Kafka 2.8


class SourceTopics:
    """The topics that the spouts read, as they were when the topology started."""

    def __init__(self, bootstrap_servers: str, topology: Topology) -> None:
        """Raises TopologyError if a topic does not exist."""
        self._servers = bootstrap_servers
        self._names = sorted(spout.topic for spout in topology.spouts.values())
        found = self._describe()
        self.partitions = {name: numbers for name, (_, numbers) in found.items()}
        self.ids = {name: topic_id for name, (topic_id, _) in found.items()}

    def check(self) -> None:
        """Raise TopologyError if a topic was made again, or has got more partitions."""
        for name, (topic_id, numbers) in self._describe().items():
            if topic_id != self.ids[name]:
                raise TopologyError(
                    f"the topic {name} was made again while the topology read it. "
                    "Use an empty snapshot store to read it from its beginning"
                )
            if numbers != self.partitions[name]:
                raise TopologyError(
                    f"the topic {name} has {len(numbers)} partitions, it had {len(self.partitions[name])} when the "
                    "topology started. Start the topology again: it reads the new partitions from their beginning"
                )

    def fingerprint(self, processors: Processors) -> dict[str, Any]:
        """Return what snapshots must match: the topology, and the identity of its topics."""
        shape = processors.fingerprint()
        known = {name: topic_id for name, topic_id in self.ids.items() if topic_id != NO_ID}
        topics = {f"topic {name}": {"id": topic_id} for name, topic_id in known.items()}
        return {**shape, "nodes": {**shape["nodes"], **topics}}

    def _describe(self) -> dict[str, tuple[str, list[int]]]:
        with Admin(self._servers) as admin:
            described = admin.describe_topics(self._names)
        found = {}
        for name, topic in described.items():
            if isinstance(topic, KafkaError):
                raise TopologyError(f"the topic {name} cannot be read: {topic.message}") from topic
            found[name] = str(topic.topic_id), sorted(_numbers(topic.partitions))
        return found


def _numbers(partitions: Iterable[Any]) -> list[int]:
    return [each.partition for each in partitions]


class CheckedStore:
    """A snapshot store that checks the topics before it calls a snapshot complete.

    If a topic was made again in between, the snapshot may hold records of both. It is then never completed.
    """

    def __init__(self, store: SnapshotStore, topics: SourceTopics) -> None:
        self._store, self._topics = store, topics

    def begin_epoch(self) -> int:
        return self._store.begin_epoch()

    def completed(self) -> Clock | None:
        return self._store.completed()

    def complete(self, epoch: int, clock: Clock) -> None:
        """Raises TopologyError if a topic has changed, SnapshotError if no broker answers."""
        try:
            self._topics.check()
        except (ConnectionFailed, KafkaError, TimeoutError) as error:
            raise SnapshotError(f"the topics cannot be checked: {error}") from error
        self._store.complete(epoch, clock)
