"""Committed offsets in memory: how far each group has read in each partition.

A committed offset is the offset of the *next* record to read, with an optional text of the consumer (metadata). It is
stored by group, topic and partition. It is removed in these cases:

- A client deletes it (OffsetDelete), its group (DeleteGroups) or its topic.
- It expires. The retention time starts when the group became Empty (KIP-211). It starts at the commit if the group has
  no members and stores offsets only, or if the Stable group does not read the topic. A commit of an old client with
  `retention_time_ms` has its own expiry time.

Offsets that are committed in a transaction are *pending*. They replace older offsets when the transaction commits. A
plain commit during the transaction is newer and is not replaced.

For example, group "readers" becomes Empty at 12:00 with a retention of 7 days. Its offsets expire 7 days later at
12:00.

This module has no threads and no I/O. offset_manager.py adds both.

Source: KIP-98, KIP-211, KIP-496; Kafka's `OffsetMetadataManager`, `OffsetExpirationConditionImpl`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import UUID

from hmb.coordinator.journal.records import OffsetCommitValue
from hmb.protocol.topics import NO_TOPIC_ID, TopicPartition

NO_EXPIRY = -1


class CommittedOffset(NamedTuple):
    """One committed offset. Times in ms."""

    offset: int
    leader_epoch: int  # the epoch of the last record read, or -1 if the client did not send it
    metadata: str
    commit_timestamp: int
    expire_timestamp: int = NO_EXPIRY
    topic_id: UUID = NO_TOPIC_ID

    @classmethod
    def of_record(cls, value: OffsetCommitValue) -> CommittedOffset:
        return cls(
            *(value.offset, value.leader_epoch, value.metadata, value.commit_timestamp),
            *(value.expire_timestamp, value.topic_id),
        )

    def is_expired(self, now: int, retention_ms: int, since: int) -> bool:
        """Return whether the offset has expired. `since` is the time (ms) at which its retention starts."""
        if self.expire_timestamp != NO_EXPIRY:
            return now >= self.expire_timestamp
        return now - since >= retention_ms


class Expiry(NamedTuple):
    """The rule by which the offsets of a group expire (`group_expiry.expiry`)."""

    since: Callable[[CommittedOffset], int]  # returns the time (ms) at which the retention of an offset starts
    is_read: Callable[[str], bool]  # returns whether the group reads a topic, whose offsets then do not expire


class GroupOffsets:
    """The committed offsets of all groups. A group without offsets has no entry."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        # Pending offsets by group id and producer id. None stands for a pending offset that is not used any more,
        # because a newer commit without a transaction has replaced it.
        self._pending: dict[str, dict[int, dict[TopicPartition, CommittedOffset | None]]] = {}

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Replace the older offsets of these partitions."""
        self._by_group.setdefault(group_id, {}).update(offsets)
        for pending in self._pending.get(group_id, {}).values():
            pending.update(dict.fromkeys(pending.keys() & offsets.keys()))

    def commit_in_transaction(
        self, group_id: str, producer_id: int, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> None:
        """Store pending offsets until the producer's transaction ends."""
        self._pending.setdefault(group_id, {}).setdefault(producer_id, {}).update(offsets)

    def end_transaction(self, group_id: str, producer_id: int, *, committed: bool) -> None:
        """Make the pending offsets of a producer valid, or discard them."""
        by_producer = self._pending.get(group_id, {})
        pending = by_producer.pop(producer_id, {})
        if not by_producer:
            self._pending.pop(group_id, None)
        newest = {partition: offset for partition, offset in pending.items() if offset is not None}
        if committed and newest:
            self.commit(group_id, newest)

    def groups_with_pending(self) -> list[str]:
        return list(self._pending)

    def pending(self, group_id: str) -> set[TopicPartition]:
        """Return the partitions with pending offsets."""
        return set[TopicPartition]().union(*self._pending.get(group_id, {}).values())

    def delete(self, group_id: str, partitions: list[TopicPartition]) -> None:
        """Delete the offsets of these partitions, pending ones included."""
        for producer_id, pending in list(self._pending.get(group_id, {}).items()):
            for partition in partitions:
                pending.pop(partition, None)
            if not pending:
                self.end_transaction(group_id, producer_id, committed=False)
        offsets = self._by_group.get(group_id, {})
        for partition in partitions:
            offsets.pop(partition, None)
        if not offsets:
            self._by_group.pop(group_id, None)

    def of_group(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        """Return the offsets of a group. The mapping changes with later commits."""
        return self._by_group.get(group_id, {})

    def expired(self, group_id: str, now: int, retention_ms: int, expiry: Expiry) -> list[TopicPartition]:
        """Return the partitions of a group whose offsets have expired."""
        pending = self.pending(group_id)
        return [
            partition
            for partition, committed in self.of_group(group_id).items()
            if partition not in pending and not expiry.is_read(partition.topic)
            if committed.is_expired(now, retention_ms, expiry.since(committed))
        ]
