"""Stores the partitions that are assigned to a member (KIP-848), and the names of the assigned topics.

In the consumer protocol, an assignment contains topic ids and no topic names. But a consumer needs the topic names of
the partitions that it reads. So the member looks up the name of each topic id in the assignment. While a name is still
unknown, the member takes over only the partitions of the other topics.

If a topic was deleted and created again, the member knows an old id and a new id with the same topic name. The id in
the latest assignment is then the valid one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from hmb.client.group.member import NEVER, Owned
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from hmb.protocol.topics import TopicPartition

TopicPartitions = ConsumerGroupHeartbeatRequest.TopicPartitions
AssignedTopics = Iterable[TopicPartitions | ConsumerGroupHeartbeatResponse.Assignment.TopicPartitions]


class AssignmentById:
    """A member's latest assignment, and the topic names for all topic ids that the member has looked up."""

    def __init__(self) -> None:
        self._assigned: dict[UUID, list[int]] = {}  # the latest assignment: topic id -> partitions
        self._names: dict[UUID, str] = {}
        self.has_looked_up = True  # whether the ids of the latest assignment have been looked up
        self.lookup_at = -NEVER  # the earliest time of the next lookup of unknown names; -NEVER: at any time

    @property
    def unnamed(self) -> frozenset[UUID]:
        """The ids of the assigned topics whose names are not known yet."""
        return frozenset(self._assigned) - self._names.keys()

    @property
    def partitions(self) -> Owned:
        """The partitions of the latest assignment, without the partitions of topics whose names are not known yet."""
        return self.named(self._assigned)

    def replace(self, topics: AssignedTopics, now: float) -> None:
        """Store a new assignment in place of the old one."""
        self._assigned = {each.topic_id: each.partitions for each in topics}
        self.has_looked_up, self.lookup_at = not self.unnamed, now

    def looked_up(self, names: Mapping[UUID, str], next_lookup: float) -> None:
        """Store the result of a lookup. `names` maps each topic id that was found to its topic name.

        If some names are still unknown, the next lookup takes place at the time `next_lookup`.
        """
        self._names.update(names)
        self.has_looked_up, self.lookup_at = True, next_lookup

    def named(self, topics: Mapping[UUID, list[int]]) -> Owned:
        """Return the partitions in `topics` with topic names instead of topic ids.

        If the name of a topic is not known yet, the topic's partitions are left out.
        """
        return frozenset(
            TopicPartition(self._names[topic_id], number)
            for topic_id, numbers in topics.items()
            if topic_id in self._names
            for number in numbers
        )

    def by_id(self, owned: Owned) -> list[TopicPartitions]:
        """Return the owned partitions in the format of a heartbeat request: with topic ids instead of topic names."""
        topics: dict[UUID, list[int]] = {}
        assigned_last = sorted(self._names, key=lambda topic_id: topic_id in self._assigned)
        # If a topic was deleted and created again, two ids have its name. Only the id in the latest assignment is
        # valid. The dict keeps this id, because it comes last.
        ids = {self._names[topic_id]: topic_id for topic_id in assigned_last}
        for name, number in sorted(owned):
            topics.setdefault(ids[name], []).append(number)
        return [TopicPartitions(topic_id=topic_id, partitions=numbers) for topic_id, numbers in topics.items()]
