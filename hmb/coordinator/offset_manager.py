"""Stores committed offsets in memory and in the journal.

A commit of offsets has two parts. In the first part, the thread holds the lock of the group. The group checks whether
the member is allowed to commit, and `begin_commit` adds the records to the journal's queue. The first part does no I/O.
The thread then releases the lock. In the second part, `Journal.write` waits until the records are on disk.

A removed member's commit never replaces a commit of the partition's next owner. To accept a commit, a thread
takes the group's lock, checks that the sender is a member, and adds the commit to the journal's queue. While
it holds the lock, the group cannot remove the sender.

When a group removes a member, all accepted commits of this member are therefore already in the journal's queue or log.
The next owner of a partition commits later, so the new offset replaces the old offset.

For example, member A commits offset 40. The commit is in the journal's queue, but not yet on disk. Now the group
removes A and assigns the partition to member B, which commits offset 45. The queue then contains offset 40 before
offset 45. The journal writes the offsets in this order, so 45 correctly replaces 40.

A thread that deletes the offsets of a group must know all these offsets. Some of them can still be in the journal's
queue, so the thread first writes the queue to the disk. It holds the group's lock while it waits for the disk, so other
requests for this group must wait. This is acceptable, because deletions are rare.

A client that fetches committed offsets gets the offsets from the broker's memory. By default, the journal changes an
offset in memory only after it has synced the record to the disk. If the setting `log.flush.acks.all` is false, the
journal changes the offset after it has written the record to the log, without a sync.

Source: Kafka's `OffsetMetadataManager`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import partial
from uuid import UUID

from hmb.coordinator.journal.partition import QueuedRecords
from hmb.coordinator.journal.records import (
    KeyAndValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
)
from hmb.coordinator.journal.writing import Journal
from hmb.coordinator.known_names import cached_by_name
from hmb.coordinator.offsets import NO_EXPIRY, CommittedOffset, Expiry, GroupOffsets
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import NO_TOPIC_ID, TopicPartition
from hmb.records import ControlType, EndTransactionMarker
from hmb.records.producer_numbers import ProducerIdAndEpoch

LOGGER = logging.getLogger(__name__)
VERSION_WITH_EXPIRY = 1  # the only version of OffsetCommitValue that has the field `expire_timestamp`


class OffsetManager:
    """The committed offsets of all groups. Thread-safe."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._offsets = GroupOffsets()
        # This lock guards `_offsets`. A thread can take it while it holds a group's lock or the `write_lock` of a
        # journal partition. A thread that holds this lock takes no other lock.
        self._lock = threading.Lock()

    # -- The caller must hold the group's lock. Only `begin_end_transaction` needs no lock.

    def begin_commit(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        producer: ProducerIdAndEpoch | None = None,
    ) -> QueuedRecords:
        """Add records that contain committed offsets to the journal's queue.

        If `producer` is not None, the commit is a part of this producer's transaction. The offsets then stay pending
        until the transaction ends.

        All records of a group belong to the same partition of the journal. This method raises NOT_COORDINATOR if the
        partition does not exist or cannot be read. It raises COORDINATOR_LOAD_IN_PROGRESS if the partition is not
        loaded yet.

        Raises UNKNOWN_SERVER_ERROR if the records are too large.
        """
        records = _records(group_id, offsets, self._journal.largest_batch(group_id))
        producer_id = None if producer is None else producer.producer_id
        return self._journal.enqueue(group_id, records, partial(self._commit, group_id, offsets, producer_id), producer)

    def begin_end_transaction(
        self, number: int, marker: EndTransactionMarker, producer: ProducerIdAndEpoch
    ) -> QueuedRecords:
        """Add the end marker of a transaction to the queue of the journal's partition `number`.

        When the marker is durable, the producer's pending offsets in this partition are committed or discarded.
        This method raises an error in three cases:

        - UNKNOWN_TOPIC_OR_PARTITION: the partition does not exist.
        - NOT_COORDINATOR: the partition cannot be read.
        - COORDINATOR_LOAD_IN_PROGRESS: the partition is not loaded yet.

        `Journal.write` can later raise INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED.
        """
        committed = marker.control_type is ControlType.COMMIT
        apply = partial(self._end_transaction, number, producer.producer_id, committed)
        return self._journal.enqueue_marker(number, marker, producer, apply)

    def begin_delete(
        self, group_id: str, partitions: Iterable[TopicPartition] | None, also: Sequence[KeyAndValue] = ()
    ) -> QueuedRecords:
        """Delete committed and pending offsets of a group: add tombstones for them to the journal's queue.

        If `partitions` is None, delete the offsets of all partitions. The caller must hold the group's lock.

        Offsets in the queue are not in memory yet. To find and delete these offsets, the method first writes the
        queue to disk.

        The parameter `also` contains other records for the same write, for example the group's own tombstone.
        Raises NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS, as `begin_commit` does.
        """
        self._journal.write_all_queued(group_id)
        wanted = None if partitions is None else dict.fromkeys(partitions)
        pending = self.pending(group_id)
        pending = pending if wanted is None else pending & wanted.keys()
        gone = list(dict.fromkeys([*self.fetch(group_id, wanted), *pending]))
        tombstones: list[KeyAndValue] = [(_key(group_id, partition), None) for partition in gone]
        return self._journal.enqueue(group_id, [*tombstones, *also], partial(self._delete, group_id, gone))

    def expired(self, group_id: str, now: int, retention_ms: int, expiry: Expiry) -> list[TopicPartition]:
        """Return the partitions whose offsets have expired in this group.

        The caller deletes these offsets with `begin_delete`. The caller must hold the group's lock until `begin_delete`
        returns, so that no member commits a new offset of these partitions in the meantime.
        """
        self._journal.write_all_queued(group_id)
        with self._lock:
            return self._offsets.expired(group_id, now, retention_ms, expiry)

    def delete_topics(self, group_id: str, ids: Mapping[str, UUID]) -> None:
        """Delete the offsets that a group has committed for deleted topics.

        `ids` maps the name of each deleted topic to its id. A new topic may have the name of a deleted topic. So the
        method deletes only offsets that contain the id of a deleted topic, or no topic id.

        If the journal cannot be written, the method logs a warning, and the offsets stay. An offset that contains the
        id of a deleted topic is then harmless: this id shows that the offset does not belong to a new topic.
        """

        def is_gone(partition: TopicPartition, committed: CommittedOffset) -> bool:
            return partition.topic in ids and committed.topic_id in (ids[partition.topic], NO_TOPIC_ID)

        if not self._has_any(group_id, ids):
            return
        try:
            self._journal.write_all_queued(group_id)
            gone = [partition for partition, committed in self.fetch(group_id).items() if is_gone(partition, committed)]
            self._journal.write(self.begin_delete(group_id, gone))
        except KafkaError as error:
            LOGGER.warning("could not delete the offsets of group %r for deleted topics: %s", group_id, error.message)

    def _has_any(self, group_id: str, topics: Container[str]) -> bool:
        with self._lock:
            return any(partition.topic in topics for partition in self._offsets.of_group(group_id))

    # -- reads

    def fetch(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, CommittedOffset]:
        """Return the committed offsets of a group for `partitions` (None means all).

        The result does not contain a partition that has no committed offset.
        """
        with self._lock:
            known = self._offsets.of_group(group_id)
            if partitions is None:
                return dict(known)
            return {partition: known[partition] for partition in partitions if partition in known}

    def pending(self, group_id: str) -> set[TopicPartition]:
        """Return the partitions for which an open transaction contains an offset of this group."""
        with self._lock:
            return self._offsets.pending(group_id)

    # -- Methods that change the offsets in memory. The journal stores each change as a record. The journal calls these
    # methods in the order of the records.

    def _commit(
        self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset], producer_id: int | None
    ) -> None:
        with self._lock:
            if producer_id is None:
                self._offsets.commit(group_id, offsets)
            else:
                self._offsets.commit_in_transaction(group_id, producer_id, offsets)

    def _end_transaction(self, number: int, producer_id: int, committed: bool) -> None:
        with self._lock:
            for group_id in self._offsets.groups_with_pending():
                if self._journal.partition_for(group_id) == number:
                    self._offsets.end_transaction(group_id, producer_id, committed=committed)

    def _delete(self, group_id: str, partitions: list[TopicPartition]) -> None:
        with self._lock:
            self._offsets.delete(group_id, partitions)

    def replay(
        self,
        key: OffsetCommitKey | LegacyOffsetCommitKey,
        value: OffsetCommitValue | LegacyOffsetCommitValue,
        producer_id: int | None,
    ) -> None:
        """Apply a record of the journal while the broker starts."""
        if isinstance(value, LegacyOffsetCommitValue):
            value = OffsetCommitValue(
                offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
            )
        offsets = {TopicPartition(key.topic, key.partition): CommittedOffset.of_record(value)}
        self._commit(key.group, offsets, producer_id)

    def forget_all(self) -> None:
        """Discard all offsets of all groups, because the topic of the journal was deleted."""
        with self._lock:
            self._offsets = GroupOffsets()


def _records(
    group_id: str, offsets: Mapping[TopicPartition, CommittedOffset], most_bytes: int
) -> list[KeyAndValue]:
    """Return a record for each committed offset.

    Raises UNKNOWN_SERVER_ERROR if the records together need more than `most_bytes` bytes. This limit protects the
    broker's memory.

    A small request can need large records, because each record repeats the group id. For example, if the group id
    has 32 KB, a commit of 16,384 offsets needs more than 500 MB.
    """
    records: list[KeyAndValue] = []
    size = 0
    for partition, committed in offsets.items():
        key, value = _key(group_id, partition), _value(committed)
        size += len(key) + len(value)
        if size > most_bytes:
            why = "send the offsets in several requests, or choose a shorter group id"
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the commit needs more than {most_bytes} bytes; {why}")
        records.append((key, value))
    return records


@cached_by_name(10_000)
def _key(group_id: str, partition: TopicPartition) -> bytes:
    return encode_key(OffsetCommitKey(group=group_id, topic=partition.topic, partition=partition.partition))


def _value(committed: CommittedOffset) -> bytes:
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp,
        expire_timestamp=committed.expire_timestamp,
        topic_id=committed.topic_id,
    )
    return encode_value(value, None if committed.expire_timestamp == NO_EXPIRY else VERSION_WITH_EXPIRY)
