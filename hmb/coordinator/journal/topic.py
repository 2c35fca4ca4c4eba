"""The topic of a journal: its partitions, and the partition to which a group or a transactional id belongs.

The partition is the hash of the id, modulo the number of partitions. For example, the hash of group "readers" in a
topic of 50 partitions selects the same partition in HMB and in Kafka, because both use Java's hash of a text.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Protocol

from hmb.coordinator.journal.partition import JournalPartition, LoadingState
from hmb.coordinator.known_names import cached_by_name
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.log import Log


class JournaledTopic(Protocol):
    """The topic of a journal."""

    name: str

    def logs(self) -> Mapping[int, Log]:
        """Return the logs by partition number: the same object for the same topic, empty if it does not exist."""

    def make(self) -> None:
        """Create the topic if it does not exist. Raises KafkaError."""


@cached_by_name(10_000)
def java_hash(text: str) -> int:
    """Return Java's `String.hashCode()`.

    The hash begins with 0. For each UTF-16 unit of the text, it becomes `31 * hash + unit`, cut to 32 bits.
    """
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value if value < 2**31 else value - 2**32


class JournalPartitions:
    """The partitions of the topic of a journal. They are replaced if the topic is deleted and created again."""

    def __init__(self, topic: JournaledTopic) -> None:
        self._topic = topic
        self._lock = threading.Lock()  # guards the replacement of the topic
        self._take(topic.logs(), LoadingState.LOADING)

    def __iter__(self) -> Iterator[tuple[int, JournalPartition]]:
        """Iterate over the numbers and the partitions, in the order of the numbers."""
        return iter(sorted(self._partitions.items()))

    @property
    def is_complete(self) -> bool:
        """Whether the topic exists and all its partitions have been read."""
        partitions = self._partitions.values()
        return len(partitions) == self._count > 0 and all(each.state is LoadingState.ACTIVE for each in partitions)

    def make_topic(self) -> None:
        """Create the topic if it does not exist. Raises KafkaError."""
        if not self._topic.logs():
            self._topic.make()

    def number_for(self, id: str) -> int:
        """Return the number of the partition of a group or a transactional id.

        Raises NOT_COORDINATOR if the topic does not exist.
        """
        self._follow()
        if not self._partitions:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"topic {self._topic.name} does not exist yet")
        value = java_hash(id)
        return 0 if value == -(2**31) else abs(value) % self._count  # -2^31 has no absolute value in 32 bits.

    def active(self, number: int) -> JournalPartition:
        """Return a partition that has been read. Raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS."""
        partition = self._partitions.get(number)
        if partition is None or partition.state is LoadingState.FAILED:
            problem = f"{self._topic.name}-{number} " + ("is not here" if partition is None else "cannot be read")
            raise KafkaError(ErrorCode.NOT_COORDINATOR, problem)
        if partition.state is LoadingState.LOADING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self._topic.name}-{number} is being read")
        return partition

    def existing(self, number: int) -> JournalPartition:
        """Return a partition as `active` does, but raise UNKNOWN_TOPIC_OR_PARTITION if it does not exist."""
        self._follow()
        if number not in self._partitions:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{self._topic.name}-{number} does not exist")
        return self.active(number)

    def _follow(self) -> None:
        """Use the current topic if it was deleted or created since the last call.

        A new topic has nothing to load. Its number of partitions stays fixed, even if partitions are added later.
        """
        if (logs := self._topic.logs()) is self._logs:
            return
        with self._lock:
            if logs is not self._logs:
                self._take(logs, LoadingState.ACTIVE)

    def _take(self, logs: Mapping[int, Log], state: LoadingState) -> None:
        self._partitions = {number: JournalPartition(log, state) for number, log in logs.items()}
        self._count = max(logs, default=-1) + 1  # partitions at the topic's creation
        self._logs = logs
