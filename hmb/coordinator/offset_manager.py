"""Committed offsets on disk and in memory: `GroupOffsets` behind the journal.

Whoever may commit is the group's business, so these calls come in two steps (see journal.py). `begin_...` is called
under the group's lock, right after the group has agreed: it takes a place in the journal and does no I/O.  The caller
then gives the lock back and waits with `Journal.write`. A member that was shut out of its group while it waited
has taken its place before, so that a commit of its successor cannot be overtaken. What is to be deleted can only be
known when no commit of the group is under way: deleting, which is rare, waits for the disk under the lock.

What is read here is durable: memory changes when the journal says so.

Source: Kafka's `OffsetMetadataManager`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import partial
from uuid import UUID

from hmb.coordinator.group import KeyAndValue
from hmb.coordinator.group_records import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
)
from hmb.coordinator.journal import Journal, Pending
from hmb.coordinator.known_names import cached_by_name
from hmb.coordinator.offsets import NO_EXPIRY, NO_TOPIC_ID, CommittedOffset, Expiry, GroupOffsets
from hmb.coordinator.producer_ids import ProducerIdAndEpoch
from hmb.protocol.errors import KafkaError
from hmb.protocol.topics import TopicPartition
from hmb.records import ControlType, EndTransactionMarker

LOGGER = logging.getLogger(__name__)
FIRST_VERSION_OF_EXPIRY = 1  # and the only one


class OffsetManager:
    """The offsets of all groups. Thread-safe."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._offsets = GroupOffsets()
        self._lock = threading.Lock()  # guards the offsets; the last to be taken, held for a moment only

    # -- under the group's lock

    def begin_commit(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        producer: ProducerIdAndEpoch | None = None,
    ) -> Pending:
        """Commit these, or keep them for the producer's transaction.

        Raises NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.
        """
        records = [(_key(group_id, partition), _value(committed)) for partition, committed in offsets.items()]
        producer_id = None if producer is None else producer.producer_id
        return self._journal.enqueue(group_id, records, partial(self._commit, group_id, offsets, producer_id), producer)

    def begin_end_transaction(
        self, number: int, marker: EndTransactionMarker, producer: ProducerIdAndEpoch
    ) -> Pending:
        """End a transaction in a partition of the journal: its offsets there count from then on, or are gone.

        Raises as `begin_commit`. `Journal.write` raises INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, too.
        """
        committed = marker.control_type is ControlType.COMMIT
        apply = partial(self._end_transaction, number, producer.producer_id, committed)
        return self._journal.enqueue_marker(number, marker, producer, apply)

    def begin_delete(
        self, group_id: str, partitions: Iterable[TopicPartition] | None, also: Sequence[KeyAndValue] = ()
    ) -> Pending:
        """Forget these (None: all), as far as they are there, and write `also` with it. Raises as `begin_commit`."""
        self._journal.settle(group_id)
        wanted = None if partitions is None else dict.fromkeys(partitions)
        pending = self.pending(group_id)
        pending = pending if wanted is None else pending & wanted.keys()
        gone = list(dict.fromkeys([*self.fetch(group_id, wanted), *pending]))
        tombstones: list[KeyAndValue] = [(_key(group_id, partition), None) for partition in gone]
        return self._journal.enqueue(group_id, [*tombstones, *also], partial(self._delete, group_id, gone))

    def expired(self, group_id: str, now: int, retention_ms: int, expiry: Expiry) -> list[TopicPartition]:
        """Those whose time has come: for `begin_delete`, without giving the group's lock back in between."""
        self._journal.settle(group_id)
        with self._lock:
            return self._offsets.expired(group_id, now, retention_ms, expiry)

    def delete_topics(self, group_id: str, ids: Mapping[str, UUID]) -> None:
        """Forget a group's offsets of deleted topics. `ids` are the topics' ids, by name.

        A new topic may already have one of the names. Its offsets stay. If the journal cannot be written, the old
        offsets stay, too, but their topic id shows that they are of no use.
        """

        def is_gone(partition: TopicPartition, committed: CommittedOffset) -> bool:
            return partition.topic in ids and committed.topic_id in (ids[partition.topic], NO_TOPIC_ID)

        if not self._has_any(group_id, ids):
            return
        try:
            self._journal.settle(group_id)
            gone = [partition for partition, committed in self.fetch(group_id).items() if is_gone(partition, committed)]
            self._journal.write(self.begin_delete(group_id, gone))
        except KafkaError as error:
            LOGGER.warning("group %s keeps its offsets of deleted topics: %s", group_id, error.message)

    def _has_any(self, group_id: str, topics: Container[str]) -> bool:
        with self._lock:
            return any(partition.topic in topics for partition in self._offsets.of_group(group_id))

    # -- read

    def fetch(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, CommittedOffset]:
        """Those of these partitions (None: all) that were committed."""
        with self._lock:
            known = self._offsets.of_group(group_id)
            if partitions is None:
                return dict(known)
            return {partition: known[partition] for partition in partitions if partition in known}

    def pending(self, group_id: str) -> set[TopicPartition]:
        """The partitions of which a transaction that is not over yet holds offsets."""
        with self._lock:
            return self._offsets.pending(group_id)

    # -- in the journal's order

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
        """A record of the journal, at the start."""
        if isinstance(value, LegacyOffsetCommitValue):
            value = OffsetCommitValue(
                offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
            )
        offsets = {TopicPartition(key.topic, key.partition): CommittedOffset.of_record(value)}
        self._commit(key.group, offsets, producer_id)

    def forget_all(self) -> None:
        """The journal itself is deleted."""
        with self._lock:
            self._offsets = GroupOffsets()


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
    return encode_value(value, None if committed.expire_timestamp == NO_EXPIRY else FIRST_VERSION_OF_EXPIRY)
