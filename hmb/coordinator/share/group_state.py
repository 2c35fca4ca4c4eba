"""The members, epochs and share-partitions of a share group, and the records that store them.

`ModernState` (modern/state.py) stores what all modern groups have, such as members and epochs. `ShareGroupState`
adds the share-partitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from hmb.coordinator.cluster_topics import AssignableTopic
from hmb.coordinator.journal.records import Key, KeyAndValue
from hmb.coordinator.modern.partitions import by_topic, partitions_of
from hmb.coordinator.modern.state import ModernState, RecordTypes
from hmb.coordinator.share.group_records import (
    SHARE_KEYS,
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
)
from hmb.coordinator.share.member import (
    ShareMember,
    current_value,
    metadata_value,
    target_of,
    target_value,
    with_current,
    with_metadata,
)
from hmb.protocol.topics import PartitionId

TopicPartitionsInfo = ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo


class ShareGroupState(ModernState[ShareMember, frozenset[PartitionId]]):
    """The members, the epochs, the target assignment and the share-partitions of one group.

    `initialized` contains the partitions whose state the share coordinator stores. `names` contains the names of the
    topics of these partitions.
    """

    record_types = RecordTypes(
        keys={key.record_type: key for key in SHARE_KEYS},
        group=ShareGroupMetadataKey,
        member=ShareGroupMemberMetadataKey,
        target_metadata=ShareGroupTargetAssignmentMetadataKey,
        target=ShareGroupTargetAssignmentMemberKey,
        current=ShareGroupCurrentMemberAssignmentKey,
        new_member=ShareMember,
        metadata_value=metadata_value,
        with_metadata=with_metadata,
        current_value=current_value,
        with_current=with_current,
        target_value=target_value,
        target_of=target_of,
    )

    def _forget(self) -> None:
        super()._forget()
        self.initialized: frozenset[PartitionId] = frozenset()
        self.names: dict[UUID, str] = {}

    def set_initialized(self, partitions: frozenset[PartitionId], topics: Iterable[AssignableTopic]) -> None:
        """Replace the set of the group's share-partitions that have a state in the share coordinator.

        `partitions` is the new set. `topics` must contain the topic of each share-partition that is not in the old set,
        because the method stores the name of this topic.
        """
        self.initialized = partitions
        self.names |= {topic.id: topic.name for topic in topics}
        value = ShareGroupStatePartitionMetadataValue(
            initialized_topics=[
                TopicPartitionsInfo(topic_id=topic, topic_name=self.names[topic], partitions=numbers)
                for topic, numbers in by_topic(partitions).items()
            ]
        )
        self._add(ShareGroupStatePartitionMetadataKey, value)

    def _restore(self, key: Key, value: Any) -> None:
        super()._restore(key, value)
        if isinstance(key, ShareGroupStatePartitionMetadataKey):
            self.names = {topic.topic_id: topic.topic_name for topic in value.initialized_topics}
            self.initialized = partitions_of(value.initialized_topics)

    def tombstones(self) -> list[KeyAndValue]:
        kinds = (ShareGroupTargetAssignmentMetadataKey, ShareGroupStatePartitionMetadataKey, ShareGroupMetadataKey)
        return [self._record(kind, None) for kind in kinds]
