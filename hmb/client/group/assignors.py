"""The assignors of a classic group: functions that assign the partitions to the members.

The problem: each partition of a topic has to belong to exactly one of the members that read the topic. In the classic
protocol one member, the group's *leader*, computes the assignment. The leader receives from each member the topics that
it reads and the partitions that it owned until now. The group uses the first assignor that all of its members know.

- *range* (the algorithm of Kafka 0.7): the members divide each topic into ranges. With five partitions and two members,
  the first member gets 0 to 2 and the second one 3 and 4. Topics with the same number of partitions have the same
  ranges, so that a program can join their records by key. With many small topics, the first members get most of the
  work.
- *roundrobin*: the assignor deals the partitions of all topics to the members like cards. The result is even. When one
  member leaves, nearly all partitions move.
- *sticky*: the result is as even as possible, and as few partitions as possible move (KIP-54).
- *cooperative-sticky*: assigns as sticky does, but a member continues to read the partitions that it keeps. A partition
  that moves is left out of the assignment at first. Its owner sees this, gives the partition up and joins again. The
  next assignment gives it to its new owner (KIP-429).

The assignors range, roundrobin and sticky are *eager*: every member gives up all partitions before it joins.

The result of an assignor depends only on its arguments, and not on the order of the members. Members are sorted before
the assignment. Static members come first, sorted by instance id, because their member ids change at every start.

Limits: racks are missing (KIP-881).

Source: org.apache.kafka.clients.consumer.{Range,RoundRobin,Sticky,CooperativeSticky}Assignor; Kafka 0.7 design,
"Consumer rebalancing algorithm".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import cycle
from typing import NamedTuple

from hmb.protocol.enums import NO_GENERATION
from hmb.protocol.topics import TopicPartition

Assignment = dict[str, set[TopicPartition]]  # by member id; every member has an entry


class SubscribedMember(NamedTuple):
    """A member as the leader sees it. `generation` is the generation in which the member received `owned`."""

    member_id: str
    topics: frozenset[str]
    instance_id: str | None = None
    owned: frozenset[TopicPartition] = frozenset()
    generation: int = NO_GENERATION

    @property
    def order(self) -> tuple[bool, str]:
        """The sort key of a member: static members first, by instance id."""
        return (self.instance_id is None, self.member_id if self.instance_id is None else self.instance_id)


Members = Iterable[SubscribedMember]
Counts = Mapping[str, int]  # the partition count of each topic that exists


def assign_range(members: Members, counts: Counts) -> Assignment:
    in_order = _sorted(members)
    assignment: Assignment = {member.member_id: set() for member in in_order}
    for topic, count in counts.items():
        readers = [member.member_id for member in in_order if topic in member.topics]
        first = 0
        for rank, reader in enumerate(readers):
            end = first + count // len(readers) + (rank < count % len(readers))
            assignment[reader].update(TopicPartition(topic, number) for number in range(first, end))
            first = end
    return assignment


def assign_round_robin(members: Members, counts: Counts) -> Assignment:
    in_order = _sorted(members)
    assignment: Assignment = {member.member_id: set() for member in in_order}
    turns = cycle(in_order)
    for partition in _all_partitions(in_order, counts):
        reader = next(member for member in turns if partition.topic in member.topics)
        assignment[reader.member_id].add(partition)
    return assignment


def assign_sticky(members: Members, counts: Counts) -> Assignment:
    in_order = _sorted(members)
    every = _all_partitions(in_order, counts)
    kept = _kept(in_order, set(every))
    if len({member.topics.intersection(counts) for member in in_order}) == 1:
        _cut_to_quotas(kept, len(every))
    owners = {partition: member_id for member_id, owned in kept.items() for partition in owned}
    readers = {
        topic: [member.member_id for member in in_order if topic in member.topics]
        for topic in {partition.topic for partition in every}
    }
    # Topics with few readers come first. Their readers then receive fewer partitions of other topics.
    for partition in sorted(every, key=lambda it: len(readers[it.topic])):
        if partition not in owners:
            owners[partition] = min(readers[partition.topic], key=lambda reader: len(kept[reader]))
            kept[owners[partition]].add(partition)
    _even_out(kept, owners, readers)
    return kept


def assign_cooperative_sticky(members: Members, counts: Counts) -> Assignment:
    """Assign as `assign_sticky` does, but leave out partitions that another member still owns."""
    all_members = list(members)
    assignment = assign_sticky(all_members, counts)
    claims = Counter(partition for member in all_members for partition in member.owned)
    kept = _kept(all_members, set(claims))
    for member_id, _, _, owned, _ in all_members:
        new = assignment[member_id] - kept[member_id]
        # A partition that another member claims too is left out.
        assignment[member_id] -= {it for it in new if claims[it] > (it in owned)}
    return assignment


def _sorted(members: Members) -> list[SubscribedMember]:
    return sorted(members, key=lambda member: member.order)


def _all_partitions(members: list[SubscribedMember], counts: Counts) -> list[TopicPartition]:
    """Return all partitions of the topics that at least one member reads."""
    topics: set[str] = set().union(*(member.topics for member in members))
    known = sorted(topics.intersection(counts))
    return [TopicPartition(topic, number) for topic in known for number in range(counts[topic])]


def _kept(members: list[SubscribedMember], every: set[TopicPartition]) -> Assignment:
    """Return the partitions that each member may keep.

    They exist, the member still reads their topic, and no other member received them in a later generation (KIP-792).
    """
    latest: dict[TopicPartition, int] = {}
    claims: dict[TopicPartition, list[SubscribedMember]] = {}
    for member in members:
        for partition in member.owned & every:
            if member.generation > latest.get(partition, -2):
                latest[partition], claims[partition] = member.generation, []
            if member.generation == latest[partition]:
                claims[partition].append(member)
    kept: Assignment = {member.member_id: set() for member in members}
    for partition, claimants in claims.items():
        # If two members claim a partition with the same generation, it is unknown which of them is right. So neither
        # keeps the partition.
        if len(claimants) == 1 and partition.topic in claimants[0].topics:
            kept[claimants[0].member_id].add(partition)
    return kept


def _cut_to_quotas(kept: Assignment, count: int) -> None:
    """Limit each member to its equal part of `count` partitions, if all members read the same topics.

    The remainder of the division goes to the members that keep most partitions.
    """
    quota, extra = divmod(count, len(kept))
    for rank, member_id in enumerate(sorted(kept, key=lambda member_id: -len(kept[member_id]))):
        kept[member_id] = set(sorted(kept[member_id])[: quota + (rank < extra)])


def _even_out(kept: Assignment, owners: dict[TopicPartition, str], readers: Mapping[str, list[str]]) -> None:
    """Move partitions until no member has two more than another member that reads the same topic.

    The loop ends, because each move makes the sum of the squares of all sizes smaller.
    """
    moved = True
    while moved:
        moved = False
        for partition in sorted(owners):
            taker = min(readers[partition.topic], key=lambda reader: len(kept[reader]))
            giver = owners[partition]
            if len(kept[giver]) - len(kept[taker]) > 1:
                kept[giver].remove(partition)
                kept[taker].add(partition)
                owners[partition] = taker
                moved = True


class Assignor(NamedTuple):
    """An assignor: its function, and whether its members may keep partitions while they join."""

    assign: Callable[[Members, Counts], Assignment]
    is_cooperative: bool = False


ASSIGNORS = {
    "range": Assignor(assign_range),
    "roundrobin": Assignor(assign_round_robin),
    "sticky": Assignor(assign_sticky),
    "cooperative-sticky": Assignor(assign_cooperative_sticky, is_cooperative=True),
}


def check_assignors(names: Iterable[str]) -> None:
    """Check the names of assignors. Raises ValueError for an unknown name, and if there is no name at all."""
    wanted = list(names)
    unknown = [name for name in wanted if name not in ASSIGNORS]
    if unknown or not wanted:
        what = f"unknown assignor {unknown[0]!r}" if unknown else "name an assignor"
        raise ValueError(f"{what}; the assignors are {', '.join(ASSIGNORS)}")


def are_cooperative(names: Iterable[str]) -> bool:
    """Return whether a member keeps its partitions while it joins.

    It keeps them only if none of its assignors is eager.
    """
    return all(ASSIGNORS[name].is_cooperative for name in names)
