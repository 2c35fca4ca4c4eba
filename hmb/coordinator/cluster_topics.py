"""The topics of the cluster, as a coordinator that assigns their partitions needs them.

`version` grows with every topic or partition that comes or goes, so that a group which looks at it with each heartbeat
notices at once what it would otherwise have to search for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple, Protocol
from uuid import UUID


class AssignableTopic(NamedTuple):
    """A topic and how many partitions it has."""

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
    """One number for these topics with their ids and partitions, 0 for none (KIP-1101).

    Kafka has another hash function; a group that goes from one broker to the other is assigned anew once.
    """
    described = sorted(f"{topic.name} {topic.id} {topic.partitions}\n" for topic in topics)
    digest = hashlib.blake2b("".join(described).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True) if described else 0
