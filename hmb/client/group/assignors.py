"""The assignors of a classic group: functions that assign the partitions to the members.

The problem: several members of a group read a topic, and each partition must belong to exactly one of them. In the
classic protocol, one member is the group's *leader* and computes the assignment. Each member sends a JoinGroup request
with three lists: its topics, the partitions that it owned before the rebalance, and its assignors. The leader receives
the lists of all members. The group uses an assignor that all members support.

HMB's client has four assignors:
- *range* (the algorithm of Kafka 0.7) divides each topic separately. With five partitions and two members,
  the first member gets the partitions 0 to 2 of the topic, and the second member gets 3 and 4. An advantage: if
  the topics "orders" and "payments" have five partitions each, the first member gets the partitions 0 to 2 of
  both topics. If a key is in partition 0 of both topics, this member reads all records with this key. A
  disadvantage: with many topics of one partition each, the first member gets all partitions.
- *roundrobin* gives the first partition to the first member, the second partition to the second member, and
  so on. After the last member, it continues with the first. All members get nearly the same number of
  partitions. But when one member leaves, nearly all partitions move to other members.
- *sticky*: all members get nearly the same number of partitions, and as few partitions as possible move
  (KIP-54).
- *cooperative-sticky* assigns like sticky, but members keep reading the partitions that do not move
  (KIP-429). A partition moves in two rebalances. In the first rebalance, the old owner gives up the
  partition. In the second rebalance, the new owner gets it.

The assignors range, roundrobin and sticky are *eager*: every member gives up all its partitions before a rebalance.

An assignor first sorts the members. The assignment therefore does not depend on the order in which the members joined.
Static members come first, in the order of their instance ids. The other members follow, in the order of their member
ids. The assignor cannot sort static members by member id, because a static member gets a new member id at each start.

Limits: these assignors do not consider the racks of members and partitions (KIP-881). In a cluster of several data
centres, a member may therefore read from a replica in another data centre, which costs time and network traffic.

Source: org.apache.kafka.clients.consumer.{Range,RoundRobin,Sticky,CooperativeSticky}Assignor; Kafka 0.7 design,
"Consumer rebalancing algorithm".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import cycle
from typing import NamedTuple

from hmb.defaults import ASSIGNOR_NAMES
from hmb.protocol.enums import NO_GENERATION
from hmb.protocol.range_assignment import divide_into_ranges, member_order
from hmb.protocol.topics import TopicPartition

Assignment = dict[str, set[TopicPartition]]  # member id -> partitions, for every member


class SubscribedMember(NamedTuple):
    """A member of a group, as the leader of the group knows it.

    `owned` contains the partitions that the member owned before the rebalance. `generation` is the generation in which
    the member received these partitions.
    """

    member_id: str
    topics: frozenset[str]
    instance_id: str | None = None
    owned: frozenset[TopicPartition] = frozenset()
    generation: int = NO_GENERATION

    @property
    def order(self) -> tuple[bool, str]:
        """The key by which an assignor sorts members.

        Static members come first, in the order of their instance ids. All others follow, in the order of their member
        ids.
        """
        return member_order(self.member_id, self.instance_id)


Members = Iterable[SubscribedMember]
Counts = Mapping[str, int]  # topic -> number of its partitions, for existing topics


def assign_range(members: Members, counts: Counts) -> Assignment:
    in_order = _sorted(members)
    assignment: Assignment = {member.member_id: set() for member in in_order}
    for topic, count in counts.items():
        readers = [member.member_id for member in in_order if topic in member.topics]
        for reader, numbers in divide_into_ranges(count, readers):
            assignment[reader].update(TopicPartition(topic, number) for number in numbers)
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
    # The topics that few members read come first, because only these members can get the partitions. The topics that
    # many members read come last. Their partitions can go to members with few partitions.
    for partition in sorted(every, key=lambda it: len(readers[it.topic])):
        if partition not in owners:
            owners[partition] = min(readers[partition.topic], key=lambda reader: len(kept[reader]))
            kept[owners[partition]].add(partition)
    _even_out(kept, owners, readers)
    return kept


def assign_cooperative_sticky(members: Members, counts: Counts) -> Assignment:
    """Assign like `assign_sticky`, but without the partitions that must move from one member to another.

    In this rebalance, no member gets these partitions, because their old owners are still reading them. The old
    owners then stop reading them, and a second rebalance assigns them.
    """
    all_members = list(members)
    assignment = assign_sticky(all_members, counts)
    claims = Counter(partition for member in all_members for partition in member.owned)
    kept = _kept(all_members, set(claims))
    for member_id, _, _, owned, _ in all_members:
        new = assignment[member_id] - kept[member_id]
        # The partition `it` had `claims[it]` owners. `it in owned` counts as 1 if this member was an owner, otherwise
        # as 0. If another member was an owner, `claims[it]` is greater, and the partition stays unassigned in this
        # rebalance.
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

    A member may keep a partition that it owned before the rebalance if all three conditions are true:

    - The partition exists.
    - The member still reads the partition's topic.
    - No other member reports the same partition with an equal or higher generation (KIP-792). For example, member A
      reports that it received partition 0 in generation 5, and member B reports generation 4. Then only A may keep
      partition 0.
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
        # If two members claim the same partition in the same generation, one claim is wrong. The leader does not know
        # which claim is wrong, so neither member keeps the partition.
        if len(claimants) == 1 and partition.topic in claimants[0].topics:
            kept[claimants[0].member_id].add(partition)
    return kept


def _cut_to_quotas(kept: Assignment, count: int) -> None:
    """Remove partitions from each member that keeps more partitions than its quota.

    All members must read the same topics. `count` is the number of partitions in these topics. The quotas of any
    two members differ by at most 1. For example, 3 members read 7 partitions. The member that keeps the most
    partitions then has a quota of 3, and each other member has a quota of 2.
    """
    quota, extra = divmod(count, len(kept))
    for rank, member_id in enumerate(sorted(kept, key=lambda member_id: -len(kept[member_id]))):
        kept[member_id] = set(sorted(kept[member_id])[: quota + (rank < extra)])


def _even_out(kept: Assignment, owners: dict[TopicPartition, str], readers: Mapping[str, list[str]]) -> None:
    """Move partitions until the members have nearly equal numbers of partitions.

    A partition moves from member A to member B if B also reads the topic, and A has at least two partitions more
    than B.

    Why does the loop end? Square each member's number of partitions, and add the squares. Each move makes this sum
    smaller. For example, a move changes the numbers 3 and 1 to 2 and 2, so the sum falls from 10 to 8. The sum
    cannot fall forever.
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
    """An assignor: its function `assign` assigns partitions to members.

    If `is_cooperative` is True, members may keep their partitions during a rebalance. If it is False, they give up all
    their partitions before the rebalance.
    """

    assign: Callable[[Members, Counts], Assignment]
    is_cooperative: bool = False


_IN_ORDER_OF_NAMES = (
    Assignor(assign_range),
    Assignor(assign_round_robin),
    Assignor(assign_sticky),
    Assignor(assign_cooperative_sticky, is_cooperative=True),
)
ASSIGNORS = dict(zip(ASSIGNOR_NAMES, _IN_ORDER_OF_NAMES, strict=True))


def check_assignors(names: Iterable[str]) -> None:
    """Check the names of assignors. Raises ValueError if a name is unknown, or if `names` is empty."""
    wanted = list(names)
    unknown = [name for name in wanted if name not in ASSIGNORS]
    if unknown or not wanted:
        what = f"unknown assignor {unknown[0]!r}" if unknown else "name an assignor"
        raise ValueError(f"{what}; the assignors are {', '.join(ASSIGNORS)}")


def are_cooperative(names: Iterable[str]) -> bool:
    """Return True if a member with these assignors may keep its partitions during a rebalance.

    The result is False if at least one of the assignors is eager, because the group may choose this assignor.
    """
    return all(ASSIGNORS[name].is_cooperative for name in names)
