"""The topics of the cluster, for a coordinator that assigns their partitions to members.

`ClusterTopics.version` increases whenever a topic or a partition is created or deleted. At each heartbeat, a KIP-848
group checks whether this version has changed. If the version has not changed since the last heartbeat, the group does
not have to compare its topics with the topics of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol
from uuid import UUID

MayDescribe = Callable[[str], bool]  # (topic) -> whether ACLs let a member see the topic


def everything(topic: str) -> bool:
    """Return True: without ACLs, a member may see every topic."""
    return True


class AssignableTopic(NamedTuple):
    """A topic: its name, its id and its number of partitions."""

    name: str
    id: UUID
    partitions: int


class ClusterTopics(Protocol):
    """The topics of a cluster: their names, ids and partition counts, and a version that increases with each change."""

    @property
    def version(self) -> int: ...

    def names(self) -> Iterable[str]: ...

    def by_name(self, name: str) -> AssignableTopic | None: ...

    def by_id(self, id: UUID) -> AssignableTopic | None: ...


def existing_topics(topics: ClusterTopics, names: Iterable[str]) -> list[AssignableTopic]:
    """Return the topics with these names. Omit each name for which no topic exists."""
    return [topic for topic in map(topics.by_name, names) if topic is not None]


def metadata_hash(topics: Iterable[AssignableTopic]) -> int:
    """Return a hash of the names, ids and partition counts of `topics` (KIP-1101).

    The result is 0 if `topics` is empty. A group stores this hash to notice when its topics have changed. Kafka
    uses a different hash function. So after HMB has loaded a group that Kafka stored, the group computes its
    assignment once more.
    """
    import hashlib  # This import loads OpenSSL, which takes 3 ms. Most brokers never need it.

    described = sorted(f"{topic.name} {topic.id} {topic.partitions}\n" for topic in topics)
    digest = hashlib.blake2b("".join(described).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True) if described else 0
