"""The topics of the cluster, as a coordinator that assigns their partitions needs them.

`version` grows with every topic or partition that is created or deleted. A group compares the version with each
heartbeat, so it notices a change without a search of all topics.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol
from uuid import UUID


class AssignableTopic(NamedTuple):
    """A topic with its number of partitions."""

    name: str
    id: UUID
    partitions: int


class PartitionId(NamedTuple):
    """One partition of the topic with this id."""

    topic_id: UUID
    partition: int


class ClusterTopics(Protocol):
    @property
    def version(self) -> int: ...

    def names(self) -> Iterable[str]: ...

    def by_name(self, name: str) -> AssignableTopic | None: ...

    def by_id(self, id: UUID) -> AssignableTopic | None: ...


def metadata_hash(topics: Iterable[AssignableTopic]) -> int:
    """Return a hash of topics, their ids and their numbers of partitions, or 0 for no topics (KIP-1101).

    Kafka uses another hash function. A group that moves between HMB and Kafka is assigned again once.
    """
    import hashlib  # Loads OpenSSL, which takes 3 ms. Most brokers have no such group, and start without it.

    described = sorted(f"{topic.name} {topic.id} {topic.partitions}\n" for topic in topics)
    digest = hashlib.blake2b("".join(described).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True) if described else 0
