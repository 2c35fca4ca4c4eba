"""Stores the partitions of a journal's topic, and finds the partition of a group id or transactional id.

Each group id or transactional id belongs to one partition of the journal's topic. The partition's number is the
absolute value of the id's hash, modulo the number of partitions. For example, the hash of the group id "u" is 117, and
the topic has 50 partitions. Because 117 modulo 50 is 17, the group belongs to partition 17.

HMB uses the same hash function as Kafka (the hash function of Java strings). HMB and Kafka therefore select the same
partition for an id.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Protocol

from hmb.coordinator.journal.partition import JournalPartition, LoadingState
from hmb.coordinator.known_names import cached_by_name
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import java_hash
from hmb.storage.log import Log


class JournaledTopic(Protocol):
    """The topic that stores a journal."""

    name: str

    def logs(self) -> Mapping[int, Log]:
        """Return a mapping from partition number to log. If the topic does not exist, the mapping is empty.

        Until the topic is deleted, each call returns the same object.
        """

    def make(self) -> None:
        """Create the topic if it does not exist. Raises KafkaError."""


_hash_of_id = cached_by_name(10_000)(java_hash)


class JournalPartitions:
    """The partitions of a journal's topic. If the topic is created again, this object contains the new partitions.

    The field `_logs` contains the logs of the partitions. The fields `_partitions` and `_count` are computed from
    `_logs`. A thread needs the lock `_lock` to change these three fields, but not to read them.
    """

    def __init__(self, topic: JournaledTopic) -> None:
        self._topic = topic
        self._lock = threading.Lock()  # A thread that holds `_lock` takes no other lock.
        self._take(topic.logs(), LoadingState.LOADING)

    def __iter__(self) -> Iterator[tuple[int, JournalPartition]]:
        """Yield pairs (partition number, partition), sorted by number."""
        return iter(sorted(self._partitions.items()))

    @property
    def is_complete(self) -> bool:
        """Whether the topic exists and the coordinator has loaded all its partitions."""
        partitions = self._partitions.values()
        return len(partitions) == self._count > 0 and all(each.state is LoadingState.ACTIVE for each in partitions)

    def make_topic(self) -> None:
        """Create the topic if it does not exist. Raises KafkaError."""
        if not self._topic.logs():
            self._topic.make()

    def number_for(self, id: str) -> int:
        """Return the number of the partition to which a group id or a transactional id belongs.

        Raises NOT_COORDINATOR if the topic does not exist.
        """
        self._follow()
        if not self._partitions:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"topic {self._topic.name} does not exist yet")
        value = _hash_of_id(id)
        return 0 if value == -(2**31) else abs(value) % self._count  # -2^31 overflows Java's abs(), so Kafka uses 0.

    def active(self, number: int) -> JournalPartition:
        """Return the partition with this number if it is loaded.

        Raises NOT_COORDINATOR if the partition does not exist or its log cannot be read. Raises
        COORDINATOR_LOAD_IN_PROGRESS if the partition is not loaded yet.
        """
        partition = self._partitions.get(number)
        if partition is None or partition.state is LoadingState.FAILED:
            problem = f"{self._topic.name}-{number} " + ("does not exist" if partition is None else "cannot be read")
            raise KafkaError(ErrorCode.NOT_COORDINATOR, problem)
        if partition.state is LoadingState.LOADING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self._topic.name}-{number} is being read")
        return partition

    def existing(self, number: int) -> JournalPartition:
        """Return the partition with this number if it is loaded. Otherwise raise a KafkaError.

        - UNKNOWN_TOPIC_OR_PARTITION: the partition does not exist.
        - NOT_COORDINATOR: the log of the partition cannot be read.
        - COORDINATOR_LOAD_IN_PROGRESS: the partition is not loaded yet.
        """
        self._follow()
        if number not in self._partitions:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{self._topic.name}-{number} does not exist")
        return self.active(number)

    def _follow(self) -> None:
        """Update this object's partitions if the journal's topic was deleted or created.

        A new topic contains no records, so the journal can use its partitions immediately.

        If an administrator adds partitions to the topic, the journal ignores them until the broker starts again.
        Otherwise, an existing group id could suddenly belong to another partition.
        """
        if (logs := self._topic.logs()) is self._logs:
            return
        with self._lock:
            if logs is not self._logs:
                self._take(logs, LoadingState.ACTIVE)

    def _take(self, logs: Mapping[int, Log], state: LoadingState) -> None:
        self._partitions = {number: JournalPartition(log, state) for number, log in logs.items()}
        self._count = max(logs, default=-1) + 1  # stays the same if partitions are added later (see `_follow`)
        self._logs = logs
