"""Who reads which partitions: the assignors that a group's leader runs, in the classic protocol.

The leader is one of the members. It gets what every member wants, and owned until now, and shares out the partitions:
each partition of a topic that somebody reads gets one owner, who reads the topic. The group uses the first assignor
that all of its members know.

- *range* (Kafka 0.7's algorithm): of each topic the first member gets the first partitions, the second the next ones.
  Topics with equally many partitions are cut alike, so that their records can be joined by key. Many topics of few
  partitions make the first members busy and leave the last ones idle.
- *roundrobin*: all partitions of all topics are dealt like cards. Even, but who goes moves nearly all of them.
- *sticky*: as even as can be, and as few partitions as possible change hands (KIP-54).
- *cooperative-sticky*: as sticky, and nobody has to stop reading what stays with him. A partition that moves is left
  out of the assignment at first: its owner sees that, gives it up, and joins again; then it goes to the new one
  (KIP-429). The other three are *eager*: every member gives up everything before it joins.

These are functions of what is in their arguments: the same members get the same, in whatever order they come. Members
are sorted, static ones first and by their instance ids, so that ids which change with every start do not matter.

Source: org.apache.kafka.clients.consumer.{Range,RoundRobin,Sticky,CooperativeSticky}Assignor; design/kafka-0.7,
"Consumer rebalancing algorithm". Left out: racks (KIP-881).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import cycle
from typing import NamedTuple

from hmb.protocol.topics import TopicPartition

Assignment = dict[str, set[TopicPartition]]  # by member id; everybody is in it


class MemberToAssign(NamedTuple):
    """A member, as the leader sees it."""

    member_id: str
    topics: frozenset[str]
    instance_id: str | None = None
    owned: frozenset[TopicPartition] = frozenset()
    generation: int = -1  # in which it was given what it owned

    @property
    def order(self) -> tuple[bool, str]:
        return (self.instance_id is None, self.member_id if self.instance_id is None else self.instance_id)


Members = Iterable[MemberToAssign]
Counts = Mapping[str, int]  # of the partitions of each topic; topics that do not exist are not in it


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
    # Topics with few readers first: who reads others too can be given those instead.
    for partition in sorted(every, key=lambda it: len(readers[it.topic])):
        if partition not in owners:
            owners[partition] = min(readers[partition.topic], key=lambda reader: len(kept[reader]))
            kept[owners[partition]].add(partition)
    _even_out(kept, owners, readers)
    return kept


def assign_cooperative_sticky(members: Members, counts: Counts) -> Assignment:
    """As sticky, without what another member owns at this moment."""
    everybody = list(members)
    assignment = assign_sticky(everybody, counts)
    claims = Counter(partition for member in everybody for partition in member.owned)
    kept = _kept(everybody, set(claims))
    for member_id, _, _, owned, _ in everybody:
        taken = {it for it in assignment[member_id] if it not in kept[member_id] and claims[it] > (it in owned)}
        assignment[member_id] -= taken
    return assignment


def _sorted(members: Members) -> list[MemberToAssign]:
    return sorted(members, key=lambda member: member.order)


def _all_partitions(members: list[MemberToAssign], counts: Counts) -> list[TopicPartition]:
    """Of the topics that somebody reads."""
    topics: set[str] = set().union(*(member.topics for member in members))
    known = sorted(topics.intersection(counts))
    return [TopicPartition(topic, number) for topic in known for number in range(counts[topic])]


def _kept(members: list[MemberToAssign], every: set[TopicPartition]) -> Assignment:
    """What each owned that is there still, that it still reads, and that nobody was given after it (KIP-792)."""
    latest: dict[TopicPartition, int] = {}
    claims: dict[TopicPartition, list[MemberToAssign]] = {}
    for member in members:
        for partition in member.owned & every:
            if member.generation > latest.get(partition, -2):
                latest[partition], claims[partition] = member.generation, []
            if member.generation == latest[partition]:
                claims[partition].append(member)
    kept: Assignment = {member.member_id: set() for member in members}
    for partition, claimants in claims.items():
        if (
            len(claimants) == 1 and partition.topic in claimants[0].topics
        ):  # of two who claim the same, neither is right
            kept[claimants[0].member_id].add(partition)
    return kept


def _cut_to_quotas(kept: Assignment, count: int) -> None:
    """All read the same: each has its quota, and who keeps most gets one of those partitions that do not divide."""
    quota, extra = divmod(count, len(kept))
    for rank, member_id in enumerate(sorted(kept, key=lambda member_id: -len(kept[member_id]))):
        kept[member_id] = set(sorted(kept[member_id])[: quota + (rank < extra)])


def _even_out(kept: Assignment, owners: dict[TopicPartition, str], readers: Mapping[str, list[str]]) -> None:
    """Move partitions while one has two or more than another who reads the same topic."""
    moved = True
    while moved:  # each move makes the sum of the squares of all sizes smaller, so there is an end
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
    assign: Callable[[Members, Counts], Assignment]
    is_cooperative: bool = False


ASSIGNORS = {
    "range": Assignor(assign_range),
    "roundrobin": Assignor(assign_round_robin),
    "sticky": Assignor(assign_sticky),
    "cooperative-sticky": Assignor(assign_cooperative_sticky, is_cooperative=True),
}


def check_assignors(names: Iterable[str]) -> None:
    """ValueError for a name that is none, and for no name."""
    wanted = list(names)
    unknown = [name for name in wanted if name not in ASSIGNORS]
    if unknown or not wanted:
        what = f"there is no assignor {unknown[0]!r}" if unknown else "name an assignor"
        raise ValueError(f"{what}; there are {', '.join(ASSIGNORS)}")


def are_cooperative(names: Iterable[str]) -> bool:
    """Whether a member with these assignors may keep what it owns while it joins: only if none of them is eager."""
    return all(ASSIGNORS[name].is_cooperative for name in names)
