"""Committed offsets: how far each group has read in each partition.

A committed offset is the *next* one to be read, with whatever text the consumer wants back (metadata). It is kept by
group, topic and partition, and forgotten

- when it is deleted (OffsetDelete), or its group is (DeleteGroups), or its topic is;
- when it expires. Since KIP-211 the clock starts when it could last have been used: when the group became Empty; or,
  where a group is only a name under which offsets are kept, or is Stable and reads other topics, at the commit. What
  a client of the years before asked for (`retention_time_ms`) overrules that: such an offset has its own time to go.

Offsets that are committed within a transaction are *pending*: they take the place of older ones when, and if, the
transaction commits. One that was committed outside of it meanwhile came later, and stays.

No threads and no disk here: offset_manager.py.

Source: KIP-98, KIP-211, KIP-496; Kafka's `OffsetMetadataManager`, `OffsetExpirationConditionImpl`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import UUID

from hmb.coordinator.group_records import OffsetCommitValue
from hmb.protocol.topics import TopicPartition

NO_TOPIC_ID = UUID(int=0)
NO_EXPIRY = -1


class CommittedOffset(NamedTuple):
    """One committed offset. Times in ms."""

    offset: int
    leader_epoch: int  # of the last record read, -1 where the client did not say
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
        """`since`: when it could last have been used."""
        if self.expire_timestamp != NO_EXPIRY:
            return now >= self.expire_timestamp
        return now - since >= retention_ms


class Expiry(NamedTuple):
    """When a group's offsets expire (`group_expiry.expiry`)."""

    since: Callable[[CommittedOffset], int]  # ms: when one could last have been used
    is_read: Callable[[str], bool]  # whether the group reads the topic, so that nothing of it expires


class GroupOffsets:
    """The offsets of all groups. A group without any is not in it."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        # By group and producer id; None: the offset that was committed there is no longer the newest.
        self._pending: dict[str, dict[int, dict[TopicPartition, CommittedOffset | None]]] = {}

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Put these in the place of older ones."""
        self._by_group.setdefault(group_id, {}).update(offsets)
        for pending in self._pending.get(group_id, {}).values():
            pending.update(dict.fromkeys(pending.keys() & offsets.keys()))

    def commit_in_transaction(
        self, group_id: str, producer_id: int, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> None:
        """Keep these until the producer's transaction ends."""
        self._pending.setdefault(group_id, {}).setdefault(producer_id, {}).update(offsets)

    def end_transaction(self, group_id: str, producer_id: int, *, committed: bool) -> None:
        """The pending offsets count from now on, or they are gone."""
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
        """The partitions of which a transaction holds offsets."""
        return set[TopicPartition]().union(*self._pending.get(group_id, {}).values())

    def delete(self, group_id: str, partitions: list[TopicPartition]) -> None:
        """Forget these, as far as they are there, also where they are pending."""
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
        """All of a group: the table itself, which changes."""
        return self._by_group.get(group_id, {})

    def expired(self, group_id: str, now: int, retention_ms: int, expiry: Expiry) -> list[TopicPartition]:
        """Those of a group whose time has come."""
        pending = self.pending(group_id)
        return [
            partition
            for partition, committed in self.of_group(group_id).items()
            if partition not in pending and not expiry.is_read(partition.topic)
            if committed.is_expired(now, retention_ms, expiry.since(committed))
        ]
