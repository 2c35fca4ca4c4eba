"""The records of `__consumer_offsets` that restore the share groups after a restart.

Like a KIP-848 group, a share group is stored in several records. A *target* is the list of partitions that the
coordinator has chosen for a member. The module `hmb.coordinator.journal.records` explains what the key and the
value of a record are:
    type      object                     key -> value
    10        a member                   group, member -> its client and its subscription
    11        the group                  group -> group epoch
    12        all targets                group -> the group epoch for which the coordinator computed the targets
    13        a member's target          group, member -> the partitions that the coordinator has chosen for the member
    14        a member's assignment      group, member -> the member epoch and the partitions that the member reads
    15        the share-partitions       group -> the partitions whose state the share coordinator stores

Source: KIP-932; the JSON definitions in the jar of kafka-group-coordinator 4.3.0.
"""

from __future__ import annotations

from uuid import UUID

from hmb.coordinator.journal.records import Key, Value
from hmb.protocol import fields as t
from hmb.protocol.schema import Struct


class ShareGroupMemberMetadataValue(Value, flexible="0+"):
    """A member of a share group and its subscription."""

    rack_id:                str | None = t.string(nullable="0+")
    client_id:              str        = t.string()
    client_host:            str        = t.string()
    subscribed_topic_names: list[str]  = t.array(t.string)


class ShareGroupMemberMetadataKey(Key, record_type=10, value=ShareGroupMemberMetadataValue):
    """The key of the record that contains one member and its subscription."""

    group_id:  str = t.string()
    member_id: str = t.string()


class ShareGroupMetadataValue(Value, flexible="0+"):
    """The group epoch, and a hash of the topics to which the group subscribes."""

    epoch:         int = t.int32()
    metadata_hash: int = t.int64()


class ShareGroupMetadataKey(Key, record_type=11, value=ShareGroupMetadataValue):
    """The key of the record that contains the epoch of one group."""

    group_id: str = t.string()


class ShareGroupTargetAssignmentMetadataValue(Value, flexible="0+"):
    """The group epoch for which the coordinator computed the assignment, and the time (ms) of this computation."""

    assignment_epoch:     int = t.int32()
    assignment_timestamp: int = t.int64(tag=0, ignorable=True)


class ShareGroupTargetAssignmentMetadataKey(Key, record_type=12, value=ShareGroupTargetAssignmentMetadataValue):
    """The key of the record that contains the assignment epoch of one group."""

    group_id: str = t.string()


class ShareGroupTargetAssignmentMemberValue(Value, flexible="0+"):
    """The target assignment of one member."""

    class TopicPartition(Struct):
        topic_id:   UUID      = t.uuid()
        partitions: list[int] = t.array(t.int32)

    topic_partitions: list[TopicPartition] = t.array(TopicPartition)


class ShareGroupTargetAssignmentMemberKey(Key, record_type=13, value=ShareGroupTargetAssignmentMemberValue):
    """The key of the record that contains the target assignment of one member."""

    group_id:  str = t.string()
    member_id: str = t.string()


class ShareGroupCurrentMemberAssignmentValue(Value, flexible="0+"):
    """The epoch and the current assignment of one member."""

    class TopicPartitions(Struct):
        topic_id:   UUID      = t.uuid()
        partitions: list[int] = t.array(t.int32)

    member_epoch:          int                   = t.int32()
    previous_member_epoch: int                   = t.int32()
    state:                 int                   = t.int8()
    assigned_partitions:   list[TopicPartitions] = t.array(TopicPartitions)


class ShareGroupCurrentMemberAssignmentKey(Key, record_type=14, value=ShareGroupCurrentMemberAssignmentValue):
    """The key of the record that contains the current assignment of one member."""

    group_id:  str = t.string()
    member_id: str = t.string()


class ShareGroupStatePartitionMetadataValue(Value, flexible="0+"):
    """The share-partitions of a group, in three lists.

    Kafka writes to `initializing_topics` before it creates a state, and to `deleting_topics` before it deletes
    a state. `initialized_topics` contains the share-partitions whose state is stored. HMB creates or deletes a
    state in one step, so it writes only this list.
    """

    class TopicPartitionsInfo(Struct):
        topic_id:   UUID      = t.uuid()
        topic_name: str       = t.string()
        partitions: list[int] = t.array(t.int32)

    class TopicInfo(Struct):
        topic_id:   UUID = t.uuid()
        topic_name: str  = t.string()

    initializing_topics: list[TopicPartitionsInfo] = t.array(TopicPartitionsInfo)
    initialized_topics:  list[TopicPartitionsInfo] = t.array(TopicPartitionsInfo)
    deleting_topics:     list[TopicInfo]           = t.array(TopicInfo)


class ShareGroupStatePartitionMetadataKey(Key, record_type=15, value=ShareGroupStatePartitionMetadataValue):
    """The key of the record that contains the share-partitions of one group."""

    group_id: str = t.string()


SHARE_KEYS = (
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupStatePartitionMetadataKey,
)
