"""The records of `__consumer_offsets` that restore the streams groups after a restart.

Like a group of the new consumer protocol (KIP-848), a streams group is stored in several records. Each record
contains one object, for example one member. The module `hmb.coordinator.journal.records` explains the keys and
the values of these records:
    type      object            key -> value
    17        the group         group -> group epoch, topology epoch (-1 while topics are missing), settings
    19        a member          group, member -> its client, its process and its address for queries
    20        the assignment    group -> the epoch and the time of the target assignment
    21        a target          group, member -> the tasks that the member will own
    22        a current state   group, member -> the member's epoch, its tasks, and the tasks it must give up
    23        the topology      group -> the parts of the application and their topics

Source: KIP-1071; the JSON definitions in the jar of kafka-group-coordinator 4.3.0.
"""

from __future__ import annotations

from hmb.coordinator.journal.records import Key, Value
from hmb.protocol import fields as t
from hmb.protocol.messages.streams_group_heartbeat import Endpoint, KeyValue, StreamsGroupHeartbeatRequest, TaskIds
from hmb.protocol.schema import Struct

Subtopology = StreamsGroupHeartbeatRequest.Topology.Subtopology


class StreamsGroupMetadataValue(Value, flexible="0+"):
    """The epoch of a streams group, a hash of its topics, and the settings of its assignment.

    - `metadata_hash` is computed from the names, ids and partition counts of the topics that the application uses.
    - `last_assignment_configs` contains the settings that the assignor must use in this epoch.
    - `validated_topology_epoch` is the epoch of the topology. It is -1 if topics of the topology are missing or
      have a wrong number of partitions.
    """

    class LastAssignmentConfig(Struct):
        key:   str = t.string()
        value: str = t.string()

    epoch:                    int                               = t.int32()
    metadata_hash:            int                               = t.int64()
    validated_topology_epoch: int                               = t.int32(default=-1, tag=0)
    last_assignment_configs:  list[LastAssignmentConfig] | None = t.array(LastAssignmentConfig, nullable="0+", tag=1)


class StreamsGroupMetadataKey(Key, record_type=17, value=StreamsGroupMetadataValue):
    """The key of the record that contains the epoch of one group."""

    group_id: str = t.string()


class StreamsGroupMemberMetadataValue(Value, flexible="0+"):
    """A member of a streams group: one thread of one process of the application."""

    instance_id:          str | None      = t.string(nullable="0+")
    rack_id:              str | None      = t.string(nullable="0+")
    client_id:            str             = t.string()
    client_host:          str             = t.string()
    rebalance_timeout_ms: int             = t.int32(default=-1)
    topology_epoch:       int             = t.int32()
    process_id:           str             = t.string()
    user_endpoint:        Endpoint | None = t.struct(Endpoint, nullable="0+", default=None)
    client_tags:          list[KeyValue]  = t.array(KeyValue)


class StreamsGroupMemberMetadataKey(Key, record_type=19, value=StreamsGroupMemberMetadataValue):
    """The key of the record that contains one member."""

    group_id:  str = t.string()
    member_id: str = t.string()


class StreamsGroupTargetAssignmentMetadataValue(Value, flexible="0+"):
    """The group epoch for which the coordinator computed the assignment, and the time (ms) of this computation."""

    assignment_epoch:     int = t.int32()
    assignment_timestamp: int = t.int64(tag=0, ignorable=True)


class StreamsGroupTargetAssignmentMetadataKey(Key, record_type=20, value=StreamsGroupTargetAssignmentMetadataValue):
    """The key of the record that contains the assignment epoch of one group."""

    group_id: str = t.string()


class StreamsGroupTargetAssignmentMemberValue(Value, flexible="0+"):
    """The target assignment of one member."""

    active_tasks:  list[TaskIds] = t.array(TaskIds)
    standby_tasks: list[TaskIds] = t.array(TaskIds)
    warmup_tasks:  list[TaskIds] = t.array(TaskIds)


class StreamsGroupTargetAssignmentMemberKey(Key, record_type=21, value=StreamsGroupTargetAssignmentMemberValue):
    """The key of the record that contains the target assignment of one member."""

    group_id:  str = t.string()
    member_id: str = t.string()


class StreamsGroupCurrentMemberAssignmentValue(Value, flexible="0+"):
    """The epoch of one member, the tasks that it has, and the tasks that it must give up.

    Each `TaskIds` object contains the tasks of one subtopology. For active tasks, the object also contains
    `assignment_epochs`: for each task, the epoch in which the member received the task.
    """

    class TaskIds(Struct):
        subtopology_id:    str              = t.string()
        partitions:        list[int]        = t.array(t.int32)
        assignment_epochs: list[int] | None = t.array(t.int32, nullable="0+", tag=0)

    member_epoch:                     int           = t.int32()
    previous_member_epoch:            int           = t.int32()
    state:                            int           = t.int8()
    active_tasks:                     list[TaskIds] = t.array(TaskIds)
    standby_tasks:                    list[TaskIds] = t.array(TaskIds)
    warmup_tasks:                     list[TaskIds] = t.array(TaskIds)
    active_tasks_pending_revocation:  list[TaskIds] = t.array(TaskIds)
    standby_tasks_pending_revocation: list[TaskIds] = t.array(TaskIds)
    warmup_tasks_pending_revocation:  list[TaskIds] = t.array(TaskIds)


class StreamsGroupCurrentMemberAssignmentKey(Key, record_type=22, value=StreamsGroupCurrentMemberAssignmentValue):
    """The key of the record that contains the current assignment of one member."""

    group_id:  str = t.string()
    member_id: str = t.string()


class StreamsGroupTopologyValue(Value, flexible="0+"):
    """The topology of the application: its subtopologies, and the topics that they read and write.

    The record has the same fields as the topology in a StreamsGroupHeartbeat request. A subtopology reads its
    source topics and its repartition source topics. If the field `partitions` of an internal topic is 0, the
    coordinator chooses the number of partitions.
    """

    epoch:         int               = t.int32()
    subtopologies: list[Subtopology] = t.array(Subtopology)


class StreamsGroupTopologyKey(Key, record_type=23, value=StreamsGroupTopologyValue):
    """The key of the record that contains the topology of one group."""

    group_id: str = t.string()


STREAMS_KEYS = (
    StreamsGroupMetadataKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupTopologyKey,
)
