"""One topic of the broker, with the logs of its partitions."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import NamedTuple

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import INTERNAL_TOPICS
from hmb.storage.log import Log

# The limit for the partitions of one topic. It is also the limit for the new partitions of one request, as in Kafka.
MAX_TOPIC_PARTITIONS = 10_000


@dataclass(slots=True)
class Topic:
    """A topic: its name, its id, its settings, and the log of each partition.

    After the broker's start, no thread changes the mapping `partitions`. To add partitions, the broker makes a new
    mapping and replaces the old one. A thread can therefore read the mapping without a lock.
    """

    name: str
    id: uuid.UUID
    partitions: dict[int, Log] = field(default_factory=dict)
    configs: dict[str, str] = field(default_factory=dict)

    @property
    def is_internal(self) -> bool:
        """Whether this is an internal topic: only the broker may write to it."""
        return self.name in INTERNAL_TOPICS

    @property
    def next_partition(self) -> int:
        """The number that the next new partition of this topic gets: the greatest existing number plus 1."""
        return max(self.partitions, default=-1) + 1

    @property
    def count(self) -> int:
        """The number of partitions, or 0 if it is unknown.

        The number is unknown if there is a gap in the partition numbers, for example 0 and 2. In this example, the
        directory of partition 1 is missing.
        """
        return len(self.partitions) if len(self.partitions) == self.next_partition else 0

    def log(self, partition: int) -> Log:
        """Return the log of a partition.

        Raises UNKNOWN_TOPIC_OR_PARTITION if the topic has no partition with this number.
        """
        log = self.partitions.get(partition)
        if log is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {self.name!r} has no partition {partition}")
        return log


class NewPartitions(NamedTuple):
    """A request to increase the number of partitions of `topic` to `total`."""

    topic: Topic
    total: int


def metric_name(name: str) -> str:
    """Return the name of a topic in metrics: the topic's name with '_' instead of '.'.

    The topics `a.b` and `a_b` have the same name in metrics. Therefore only one of them may exist, as in Kafka.
    """
    return name.replace(".", "_")


def check_count(name: str, partitions: int) -> None:
    """Raise INVALID_PARTITIONS if `partitions` is too small, and POLICY_VIOLATION if it is too large."""
    if partitions < 1:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"{partitions} partitions for {name!r}: at least 1 is needed")
    if partitions > MAX_TOPIC_PARTITIONS:
        why = f"{partitions} partitions for {name!r}: {MAX_TOPIC_PARTITIONS} at most"
        raise KafkaError(ErrorCode.POLICY_VIOLATION, why)
