"""Stores committed offsets in memory: the position of each group in each partition.

A committed offset is the offset of the *next* record that the group reads. The coordinator stores one committed offset
for each group, topic and partition. A consumer can add a short text, the metadata, to each offset that it commits.

The coordinator removes a committed offset for one of two reasons:
- Deletion: a client deletes the offset (OffsetDelete), its group (DeleteGroups) or its topic (DeleteTopics).
- Expiry: the retention time of the offset is over (KIP-211). group_expiry.py describes when this time starts. An old
  client can send its own retention time with a commit (`retention_time_ms`).

For example, the retention time of committed offsets is 7 days, and the last member of the classic group "readers"
leaves on May 1. The offsets of the group expire on May 8.

If a client commits an offset in a transaction, the offset is *pending* until the transaction ends. If the
transaction commits, its pending offsets replace the older committed offsets. If the transaction aborts, the
coordinator discards its pending offsets.

For example, a transaction commits offset 10 of a partition. This offset is pending while the transaction is
open. Meanwhile, a member commits offset 20 without a transaction. Offset 20 is newer, so it stays the
committed offset when the transaction commits.

This module uses no locks and does no I/O. offset_manager.py adds a lock and the journal.

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
    """One committed offset. Times are in ms since 1970."""

    offset: int
    leader_epoch: int  # the leader epoch of the last record that the client read, or -1 if it is unknown
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
        """Return whether the offset has expired. `since` is the time (ms) at which the retention time starts."""
        if self.expire_timestamp != NO_EXPIRY:
            return now >= self.expire_timestamp
        return now - since >= retention_ms


class Expiry(NamedTuple):
    """The rule that determines when the committed offsets of one group expire. See `group_expiry.expiry`."""

    since: Callable[[CommittedOffset], int]  # returns the time (ms) at which the retention time of an offset starts
    is_read: Callable[[str], bool]  # returns whether the group reads a topic; offsets of such a topic do not expire


class GroupOffsets:
    """The committed offsets of all groups. A group without offsets has no entry."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        # The offsets of open transactions, by group id, producer id and partition. When a transaction is committed, its
        # offsets become the group's committed offsets. If the group has meanwhile committed another offset of a
        # partition, the partition's entry is None, so the end of the transaction does not replace the newer offset.
        self._pending: dict[str, dict[int, dict[TopicPartition, CommittedOffset | None]]] = {}

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Store these offsets as committed.

        The new offsets replace the older committed and pending offsets of the same partitions.
        """
        self._by_group.setdefault(group_id, {}).update(offsets)
        for pending in self._pending.get(group_id, {}).values():
            pending.update(dict.fromkeys(pending.keys() & offsets.keys()))

    def commit_in_transaction(
        self, group_id: str, producer_id: int, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> None:
        """Store offsets as pending until the producer's transaction ends."""
        self._pending.setdefault(group_id, {}).setdefault(producer_id, {}).update(offsets)

    def end_transaction(self, group_id: str, producer_id: int, *, committed: bool) -> None:
        """End a producer's transaction. If `committed` is true, commit the pending offsets. Otherwise discard them."""
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
        """Return the partitions for which an open transaction contains an offset of this group."""
        return set[TopicPartition]().union(*self._pending.get(group_id, {}).values())

    def delete(self, group_id: str, partitions: list[TopicPartition]) -> None:
        """Delete the offsets that a group has committed for `partitions`.

        The method also deletes pending offsets: offsets that a producer has committed in an open transaction.
        """
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
        """Return the committed offsets of a group. The mapping is not a copy, so a later commit changes it."""
        return self._by_group.get(group_id, {})

    def expired(self, group_id: str, now: int, retention_ms: int, expiry: Expiry) -> list[TopicPartition]:
        """Return the partitions whose committed offsets have expired in this group."""
        pending = self.pending(group_id)
        return [
            partition
            for partition, committed in self.of_group(group_id).items()
            if partition not in pending and not expiry.is_read(partition.topic)
            if committed.is_expired(now, retention_ms, expiry.since(committed))
        ]
