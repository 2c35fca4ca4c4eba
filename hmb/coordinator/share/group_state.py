"""The members, epochs and share-partitions of a share group, and the records that store them.

Like the `ConsumerState` of a KIP-848 group, each method that changes the state creates the record of its change.
`finish` puts all records of one request into one `Write`. If a write fails, the state is restored from the stored
records (`RecordedSteps`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from hmb.coordinator.cluster_topics import AssignableTopic
from hmb.coordinator.journal.records import Key, KeyAndValue
from hmb.coordinator.modern.records import by_topic, encode, partitions_of, tombstones_of_member
from hmb.coordinator.modern.state import ModernState
from hmb.coordinator.modern.store import RecordedSteps
from hmb.coordinator.share.group_records import (
    SHARE_KEYS,
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)
from hmb.coordinator.share.member import (
    MEMBER_KEYS,
    ShareMember,
    current_record,
    member_record,
    target_record,
    with_current,
    with_metadata,
)
from hmb.protocol.topics import PartitionId

TopicPartitionsInfo = ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo


class ShareGroupState(ModernState[ShareMember, frozenset[PartitionId]]):
    """The members, epochs, target and share-partitions of one group.

    - All member ids in `targets` are ids of `members`.
    - `initialized` contains the partitions whose state the share coordinator stores. `names` contains their topics.
    """

    def __init__(self, group_id: str, resume: Callable[[int], None]) -> None:
        """Create the state of an empty group. After a failed write, the state is restored and calls `resume(now)`."""
        keys = {key.record_type: key for key in SHARE_KEYS}
        super().__init__(group_id, RecordedSteps(self._restore_all, resume, keys))

    def _forget(self) -> None:
        super()._forget()
        self.initialized: frozenset[PartitionId] = frozenset()
        self.names: dict[UUID, str] = {}

    # -- changes

    def put_subscription(self, member: ShareMember) -> None:
        self.members[member.member_id] = member
        self._steps.add(member_record(self.group_id, member))

    def put_assignment(self, member: ShareMember) -> None:
        self.members[member.member_id] = member
        self._steps.add(current_record(self.group_id, member))

    def remove(self, member_id: str) -> None:
        del self.members[member_id]
        self.targets.pop(member_id, None)
        self._steps.add(*tombstones_of_member(MEMBER_KEYS, self.group_id, member_id))

    def set_epoch(self, epoch: int, metadata_hash: int) -> None:
        self.epoch, self.metadata_hash = epoch, metadata_hash
        value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
        self._steps.add(encode(ShareGroupMetadataKey(group_id=self.group_id), value))

    def _target_record(self, member_id: str, target: frozenset[PartitionId]) -> KeyAndValue:
        return target_record(self.group_id, member_id, target)

    def set_assignment_epoch(self, epoch: int, timestamp: int) -> None:
        self.assignment_epoch, self.assignment_timestamp = epoch, timestamp
        value = ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp)
        self._steps.add(encode(ShareGroupTargetAssignmentMetadataKey(group_id=self.group_id), value))

    def set_initialized(self, partitions: frozenset[PartitionId], topics: Iterable[AssignableTopic]) -> None:
        """Store which partitions have a state. `topics` contains the topics of new partitions."""
        self.initialized = partitions
        self.names |= {topic.id: topic.name for topic in topics}
        value = ShareGroupStatePartitionMetadataValue(
            initialized_topics=[
                TopicPartitionsInfo(topic_id=topic, topic_name=self.names[topic], partitions=numbers)
                for topic, numbers in by_topic(partitions).items()
            ]
        )
        self._steps.add(encode(ShareGroupStatePartitionMetadataKey(group_id=self.group_id), value))

    def tombstones(self) -> list[KeyAndValue]:
        """Return the tombstones that delete all records of a group without members."""
        keys = (
            ShareGroupTargetAssignmentMetadataKey,
            ShareGroupStatePartitionMetadataKey,
            ShareGroupMetadataKey,
        )
        return [encode(key(group_id=self.group_id), None) for key in keys]

    # -- the journal

    def replay(self, key: Key, value: Any) -> None:
        """Apply a record of the journal when the broker starts."""
        self._steps.replay(key, value)
        self._restore(key, value)

    def _restore_all(self, records: Iterable[tuple[Key, Any]]) -> None:
        self._forget()
        for key, value in records:
            self._restore(key, value)

    def _restore(self, key: Key, value: Any) -> None:
        match key:
            case ShareGroupMetadataKey():
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case ShareGroupMemberMetadataKey():
                self.members[key.member_id] = with_metadata(self._member(key.member_id), value)
            case ShareGroupCurrentMemberAssignmentKey():
                self.members[key.member_id] = with_current(self._member(key.member_id), value)
            case ShareGroupTargetAssignmentMetadataKey():
                self.assignment_epoch, self.assignment_timestamp = value.assignment_epoch, value.assignment_timestamp
            case ShareGroupTargetAssignmentMemberKey():
                self.targets[key.member_id] = partitions_of(value.topic_partitions)
            case ShareGroupStatePartitionMetadataKey():
                self.names = {topic.topic_id: topic.topic_name for topic in value.initialized_topics}
                self.initialized = partitions_of(value.initialized_topics)

    def _member(self, member_id: str) -> ShareMember:
        return self.members.get(member_id) or ShareMember(member_id)
