"""The members, epochs and share-partitions of a share group, and the records that store them.

The base class `ModernState` is the same as for a KIP-848 group. Each method that changes the state creates the record
of its change, and `finish` puts all records of one request into one `Write`. If a write fails, the state is restored
from the stored records (`RecordedSteps`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar
from uuid import UUID

from hmb.coordinator.cluster_topics import AssignableTopic
from hmb.coordinator.journal.records import Key, KeyAndValue, Keys
from hmb.coordinator.modern.records import by_topic, encode, partitions_of
from hmb.coordinator.modern.state import ModernState
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

    `initialized` contains the partitions whose state the share coordinator stores. `names` contains their topics.
    """

    record_keys: ClassVar[Keys] = {key.record_type: key for key in SHARE_KEYS}
    member_keys = MEMBER_KEYS

    def _forget(self) -> None:
        super()._forget()
        self.initialized: frozenset[PartitionId] = frozenset()
        self.names: dict[UUID, str] = {}

    # -- changes

    def set_epoch(self, epoch: int, metadata_hash: int) -> None:
        self.epoch, self.metadata_hash = epoch, metadata_hash
        value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
        self._steps.add(encode(ShareGroupMetadataKey(group_id=self.group_id), value))

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

    def _member_record(self, member: ShareMember) -> KeyAndValue:
        return member_record(self.group_id, member)

    def _current_record(self, member: ShareMember) -> KeyAndValue:
        return current_record(self.group_id, member)

    def _target_record(self, member_id: str, target: frozenset[PartitionId]) -> KeyAndValue:
        return target_record(self.group_id, member_id, target)

    def _assignment_epoch_record(self, epoch: int, timestamp: int) -> KeyAndValue:
        value = ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp)
        return encode(ShareGroupTargetAssignmentMetadataKey(group_id=self.group_id), value)

    def _restore(self, key: Key, value: Any) -> None:
        match key:
            case ShareGroupMetadataKey():
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case ShareGroupMemberMetadataKey():
                self._put(with_metadata(self._member(key.member_id), value))
            case ShareGroupCurrentMemberAssignmentKey():
                self._put(with_current(self._member(key.member_id), value))
            case ShareGroupTargetAssignmentMetadataKey():
                self.assignment_epoch, self.assignment_timestamp = value.assignment_epoch, value.assignment_timestamp
            case ShareGroupTargetAssignmentMemberKey():
                self.targets[key.member_id] = partitions_of(value.topic_partitions)
            case ShareGroupStatePartitionMetadataKey():
                self.names = {topic.topic_id: topic.topic_name for topic in value.initialized_topics}
                self.initialized = partitions_of(value.initialized_topics)

    def _member(self, member_id: str) -> ShareMember:
        return self.members.get(member_id) or ShareMember(member_id)
