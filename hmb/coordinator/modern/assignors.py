"""The assignors of KIP-848 groups: which member reads which partitions.

The input of an assignor is, for each member, the subscribed topics and the current target. Its output is the new target
of each member. Each partition of a subscribed topic gets exactly one member that subscribes to the topic.

- *uniform* (the default): members with the same subscription differ by at most one partition. As few partitions as
  possible move to another member ("sticky").
- *range*: the first member gets the first partitions of each topic, the second member the next ones. Topics with equal
  partition counts are divided equally. Partition 3 of both topics then has the same member, which can join their
  records by key. The algorithm is Kafka 0.7's, and neither balanced nor sticky over several topics.

For example, members A and B read topics x and y with three partitions each. Range assigns A: x0 x1 y0 y1 and B: x2 y2.
Uniform assigns three partitions to each member.

Members are sorted: static members first, by instance id. The same members therefore always get the same partitions.

Source: KIP-848; the Kafka 0.7 design on rebalancing; Kafka's `UniformAssignor`, `RangeAssignor`.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from hmb.coordinator.cluster_topics import PartitionId

UNIFORM, RANGE = "uniform", "range"
Targets = dict[str, frozenset[PartitionId]]  # member id -> assigned partitions
ROUNDS = 16  # the most rounds of balancing; each round about halves the imbalance that remains


@dataclass(frozen=True, slots=True)
class MemberToAssign:
    """The input of an assignor for one member: its subscribed topics and its current target (`owned`)."""

    member_id: str
    instance_id: str | None
    topics: frozenset[UUID]
    owned: frozenset[PartitionId] = field(default=frozenset())

    @property
    def order(self) -> tuple[bool, str]:
        return (self.instance_id is None, self.member_id if self.instance_id is None else self.instance_id)


def assign_range(members: Iterable[MemberToAssign], partitions: Mapping[UUID, int]) -> Targets:
    """Return the targets of the range assignor. `partitions` contains the partition count of each topic."""
    in_order = sorted(members, key=lambda member: member.order)
    targets: dict[str, set[PartitionId]] = {member.member_id: set() for member in in_order}
    for topic, count in partitions.items():
        readers = [member for member in in_order if topic in member.topics]
        first = 0
        for number, reader in enumerate(readers):
            end = first + count // len(readers) + (number < count % len(readers))
            targets[reader.member_id].update(PartitionId(topic, each) for each in range(first, end))
            first = end
    return {member_id: frozenset(owned) for member_id, owned in targets.items()}


def assign_uniform(members: Iterable[MemberToAssign], partitions: Mapping[UUID, int]) -> Targets:
    """Return the targets of the uniform assignor. `partitions` contains the partition count of each topic."""
    in_order = sorted(members, key=lambda member: member.order)
    kept = {member.member_id: _kept(member, partitions) for member in in_order}
    if len({member.topics for member in in_order}) <= 1:
        return _assign_alike(in_order, kept, partitions)
    return _Balance(in_order, kept, partitions).targets()


def _kept(member: MemberToAssign, partitions: Mapping[UUID, int]) -> set[PartitionId]:
    """Return the partitions of the current target that still exist and whose topic the member still reads."""
    return {
        each for each in member.owned if each.topic_id in member.topics and each.partition < _count(each, partitions)
    }


def _count(partition: PartitionId, partitions: Mapping[UUID, int]) -> int:
    return partitions.get(partition.topic_id, 0)


def _all(partitions: Mapping[UUID, int], topics: Iterable[UUID]) -> list[PartitionId]:
    return [PartitionId(topic, number) for topic in sorted(topics) for number in range(partitions.get(topic, 0))]


def _assign_alike(
    members: list[MemberToAssign], kept: dict[str, set[PartitionId]], partitions: Mapping[UUID, int]
) -> Targets:
    """Return the targets of members that all read the same topics.

    Each member gets an equal quota. If the division leaves a remainder, the members that own the most partitions get
    one more partition each.
    """
    if not members:
        return {}
    every = _all(partitions, members[0].topics)
    quota, extra = divmod(len(every), len(members))
    by_size = sorted(members, key=lambda member: -len(kept[member.member_id]))
    quotas = {member.member_id: quota + (rank < extra) for rank, member in enumerate(by_size)}
    for member_id, owned in kept.items():
        for surplus in sorted(owned)[quotas[member_id] :]:
            owned.remove(surplus)
    taken = set().union(*kept.values())
    free = iter([partition for partition in every if partition not in taken])
    for member in members:
        owned = kept[member.member_id]
        owned.update(
            partition for _, partition in zip(range(quotas[member.member_id] - len(owned)), free, strict=False)
        )
    return {member_id: frozenset(owned) for member_id, owned in kept.items()}


class _Balance:
    """The uniform assignment of members that read different topics.

    It first assigns the partitions without an owner, and then moves partitions from the members that own the most.
    """

    def __init__(
        self, members: list[MemberToAssign], kept: dict[str, set[PartitionId]], partitions: Mapping[UUID, int]
    ) -> None:
        self._owned = kept
        self._readers: dict[UUID, list[str]] = defaultdict(list)
        for member in members:
            for topic in member.topics & partitions.keys():
                self._readers[topic].append(member.member_id)
        self._partitions = partitions

    def targets(self) -> Targets:
        # Topics with few readers come first. Their readers then get fewer partitions of topics with many readers.
        in_order = sorted(self._readers, key=lambda topic: (len(self._readers[topic]), topic))
        for topic in in_order:
            self._give_away(topic)
        for _ in range(ROUNDS):
            moved = [self._even_out(topic) for topic in in_order]
            if not any(moved):
                break
        return {member_id: frozenset(owned) for member_id, owned in self._owned.items()}

    def _heap(self, topic: UUID, sign: int) -> list[tuple[int, int, str]]:
        readers = self._readers[topic]
        heap = [(sign * len(self._owned[reader]), number, reader) for number, reader in enumerate(readers)]
        heapq.heapify(heap)
        return heap

    def _give_away(self, topic: UUID) -> None:
        """Assign each partition without an owner to the reader that owns the fewest partitions."""
        readers = self._readers[topic]
        taken = {each.partition for reader in readers for each in self._owned[reader] if each.topic_id == topic}
        heap = self._heap(topic, 1)
        for number in range(self._partitions[topic]):
            if number not in taken:
                size, order, reader = heap[0]
                self._owned[reader].add(PartitionId(topic, number))
                heapq.heapreplace(heap, (size + 1, order, reader))

    def _even_out(self, topic: UUID) -> bool:
        """Move partitions of one topic from the reader that owns the most to the reader that owns the fewest.

        Stop when the two differ by at most one partition. Return whether a partition has moved.
        """
        movable = {
            reader: sorted(each for each in self._owned[reader] if each.topic_id == topic)
            for reader in self._readers[topic]
        }
        most = [entry for entry in self._heap(topic, -1) if movable[entry[2]]]
        heapq.heapify(most)
        fewest = self._heap(topic, 1)
        moved = False
        while most and fewest:
            giver, taker = most[0][2], fewest[0][2]
            if fewest[0][0] != len(self._owned[taker]):  # This entry is outdated: the reader has lost a partition.
                heapq.heapreplace(fewest, (len(self._owned[taker]), *fewest[0][1:]))
            elif -most[0][0] != len(self._owned[giver]):  # This entry is outdated: the reader has a new partition.
                heapq.heapreplace(most, (-len(self._owned[giver]), *most[0][1:]))
            elif len(self._owned[giver]) - len(self._owned[taker]) <= 1:
                break
            else:
                partition = movable[giver].pop()
                self._owned[giver].remove(partition)
                self._owned[taker].add(partition)
                moved = True
                if not movable[giver]:
                    heapq.heappop(most)
        return moved


ASSIGNORS: dict[str, Callable[[Iterable[MemberToAssign], Mapping[UUID, int]], Targets]] = {
    UNIFORM: assign_uniform,
    RANGE: assign_range,
}
