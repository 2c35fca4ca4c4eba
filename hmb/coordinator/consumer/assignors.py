"""The assignors of KIP-848 groups: algorithms that decide which member reads which partitions.

For each member, an assignor receives the member's current target assignment and the topics to which the member
subscribes. The assignor returns the new target assignment of each member. It assigns each partition of a subscribed
topic to exactly one member, and this member subscribes to the topic.

HMB has two assignors:
- *uniform* (the default): among members with the same subscription, the numbers of partitions differ by at most one.
  The assignor is *sticky*: it moves as few partitions as possible from one member to another.
- *range* (from Kafka 0.7): the first member gets the first partitions of each topic, the second member gets the next
  partitions, and so on. The assignor is not sticky. If the members read several topics, some members can get more
  partitions than others.

Suppose that the same members read the topics x and y, which have the same number of partitions. With *range*, one
member gets partition 3 of x and partition 3 of y. It can combine records of x and y that have the same key (a join).

For example, members A and B read the topics x and y, which have three partitions each. The range assignor assigns x0,
x1, y0 and y1 to A, and x2 and y2 to B. The uniform assignor assigns three partitions to A and three to B.

The assignors first sort the members. Otherwise, the result would depend on the order in which the members have joined
the group. Static members come first, in the order of their instance ids. The other members follow, in the order of
their member ids.

Source: KIP-848; the Kafka 0.7 design on rebalancing; Kafka's `UniformAssignor`, `RangeAssignor`.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from hmb.protocol.range_assignment import divide_into_ranges, member_order
from hmb.protocol.topics import PartitionId

UNIFORM, RANGE = "uniform", "range"
Targets = dict[str, frozenset[PartitionId]]  # member id -> the partitions that the member should own
ROUNDS = 16  # the maximum number of balancing rounds; each round reduces the imbalance to about one half


class MemberToAssign(NamedTuple):
    """The data about one member that an assignor needs to compute the next target assignment.

    `topics` contains the ids of the topics that the member reads. `owned` contains the partitions that the
    current target assignment gives to the member.
    """

    member_id: str
    instance_id: str | None
    topics: frozenset[UUID]
    owned: frozenset[PartitionId] = frozenset()

    @property
    def order(self) -> tuple[bool, str]:
        return member_order(self.member_id, self.instance_id)


def assign_range(members: Iterable[MemberToAssign], partitions: Mapping[UUID, int]) -> Targets:
    """Return the target assignments of the range assignor. `partitions` contains the partition count of each topic."""
    in_order = sorted(members, key=lambda member: member.order)
    targets: dict[str, set[PartitionId]] = {member.member_id: set() for member in in_order}
    for topic, count in partitions.items():
        readers = [member.member_id for member in in_order if topic in member.topics]
        for reader, numbers in divide_into_ranges(count, readers):
            targets[reader].update(PartitionId(topic, number) for number in numbers)
    return {member_id: frozenset(owned) for member_id, owned in targets.items()}


def assign_uniform(members: Iterable[MemberToAssign], partitions: Mapping[UUID, int]) -> Targets:
    """Return the target assignments of the uniform assignor.

    `partitions` contains the partition count of each topic.
    """
    in_order = sorted(members, key=lambda member: member.order)
    kept = {member.member_id: _kept(member, partitions) for member in in_order}
    if len({member.topics for member in in_order}) <= 1:
        return _assign_alike(in_order, kept, partitions)
    return _Balance(in_order, kept, partitions).targets()


def _kept(member: MemberToAssign, partitions: Mapping[UUID, int]) -> set[PartitionId]:
    """Return the partitions that the member can keep from its current target assignment.

    The member must give up a partition that was deleted, or whose topic the member no longer reads.
    """
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
    """Return the target assignments of members that all read the same topics.

    The partition counts of two members differ by at most one. For example, three members get 3, 2 and 2 of seven
    partitions. A member that already owns many partitions gets the greater count, so that fewer partitions move.
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
    """Computes uniform target assignments for members that read different topics.

    First, each partition without an owner goes to the member that owns the fewest partitions. Then partitions move
    from the members with the most partitions to the members with the fewest. A member gets only partitions of
    topics that it reads.
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
        # Topics that only few members read come first. Topics that many members read come later, because their
        # partitions can go to more members. These partitions then go to the members that own the fewest partitions.
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
        """Assign the free partitions of one topic. A partition is free if no member owns it.

        Only members that read the topic receive partitions. The method assigns one partition at a time. Each
        partition goes to the member that owns the fewest partitions at that moment, counted over all topics.
        """
        readers = self._readers[topic]
        taken = {each.partition for reader in readers for each in self._owned[reader] if each.topic_id == topic}
        heap = self._heap(topic, 1)
        for number in range(self._partitions[topic]):
            if number not in taken:
                size, order, reader = heap[0]
                self._owned[reader].add(PartitionId(topic, number))
                heapq.heapreplace(heap, (size + 1, order, reader))

    def _even_out(self, topic: UUID) -> bool:
        """Move partitions of one topic from members with many partitions to members with few partitions.

        Return True if at least one partition has moved.

        Only members that read the topic take part. The method counts all partitions of these members, including
        partitions of other topics.

        Partitions move one at a time. The old owner is the member with the most partitions among the members that own
        a partition of the topic. The new owner is the member with the fewest partitions. The method stops when the
        counts of these two members differ by at most one.
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
            if fewest[0][0] != len(self._owned[taker]):  # The entry is outdated: `taker` gained or lost partitions.
                heapq.heapreplace(fewest, (len(self._owned[taker]), *fewest[0][1:]))
            elif -most[0][0] != len(self._owned[giver]):  # The entry is outdated: `giver` gained or lost partitions.
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
