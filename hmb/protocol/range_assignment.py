"""Sorts the members of a group, and divides a topic's partitions among them (range assignment).

In the classic protocol, a client computes the assignment of a group. In the protocol of KIP-848, the coordinator
computes the assignment. Both protocols have a range assignor, and both range assignors divide the partitions of a topic
in the same way.

For example, a topic has five partitions, and two members read the topic. The first member gets the partitions 0 to 2,
and the second member gets 3 and 4.

Source: the Kafka 0.7 design, "Consumer rebalancing algorithm"; the two classes `RangeAssignor` in Kafka's
modules `clients` and `group-coordinator`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

Reader = TypeVar("Reader")


def member_order(member_id: str, instance_id: str | None) -> tuple[bool, str]:
    """Return a sort key for a member. Static members come first, in the order of their instance ids.

    All other members follow, in the order of their member ids.
    """
    return (instance_id is None, member_id if instance_id is None else instance_id)


def divide_into_ranges(count: int, readers: Sequence[Reader]) -> Iterator[tuple[Reader, range]]:
    """Divide the partitions 0 to `count` - 1 of a topic among the readers in the given order.

    Yield one range for each reader. For example, if 7 partitions have 3 readers, the ranges have 3, 2 and 2 partitions.
    """
    first = 0
    for rank, reader in enumerate(readers):
        end = first + count // len(readers) + (rank < count % len(readers))
        yield reader, range(first, end)
        first = end
