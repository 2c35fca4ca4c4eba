"""The assignor of share groups: it decides which members read which partitions.

Several members of a share group may read the same partition, so a group can have more members than partitions.
The *readers* of a topic are the members that subscribe to the topic. The assignor looks at each topic
separately:
- If the topic has at least as many partitions as readers, each partition goes to one reader. A reader can get
  several partitions.
- If the topic has fewer partitions than readers, each reader gets one partition. Several readers then share a
  partition.

For example, topic "orders" has 2 partitions, and the members A, B, C and D read it. A and C read partition 0. B and
D read partition 1. When C and D leave, A reads partition 0, and B reads partition 1.

In a share group, a member can read a new partition at once, even if another member still reads this partition.
So it costs little to move a partition, and the assignor does not try to keep earlier assignments.

Source: KIP-932; Kafka's `SimpleAssignor`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from hmb.protocol.topics import PartitionId

SIMPLE = "simple"


def assign_simple(
    members: Mapping[str, frozenset[UUID]], partitions: Iterable[PartitionId]
) -> dict[str, frozenset[PartitionId]]:
    """Assign `partitions` to the members. `members` maps each member id to the ids of the topics that it reads."""
    targets: dict[str, set[PartitionId]] = {member_id: set() for member_id in members}
    topics: dict[UUID, list[PartitionId]] = {}
    for partition in sorted(partitions):
        topics.setdefault(partition.topic_id, []).append(partition)
    # `first` is the index of the reader that gets a topic's first partition. If `first` were 0 for each topic, the
    # first readers would always get the extra partitions. So `first` grows by each topic's number of partitions.
    first = 0
    for topic, numbered in topics.items():
        readers = sorted(member_id for member_id, read in members.items() if topic in read)
        if not readers:
            continue
        for number in range(max(len(readers), len(numbered))):
            reader = readers[(first + number) % len(readers)]
            targets[reader].add(numbered[number % len(numbered)])
        first += len(numbered)
    return {member_id: frozenset(target) for member_id, target in targets.items()}
