"""StreamsGroupHeartbeat (88): join a streams group, stay in it, or leave it (KIP-1071).

The members of a streams group are the threads of a Kafka Streams application. The application divides its work
into *tasks*, and the broker assigns the tasks to the members.

A member that joins a streams group sends the *topology* of the application. The topology consists of
*subtopologies*. Each subtopology contains the topics that it reads (names or patterns), and the internal topics
that it writes. Only this application uses the internal topics, and the broker creates them.
"""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class KeyValue(Struct):
    """A setting of a topic, or a tag of a client."""

    key:   str = t.string()
    value: str = t.string()


class Endpoint(Struct):
    """The address at which one process of the application answers queries about its stored state."""

    host: str = t.string()
    port: int = t.uint16()


class TaskOffset(Struct):
    """The sum of a task's offsets in all its changelog partitions.

    A task stores each change of its state in changelog partitions. To restore the state, the task reads these
    partitions. In `task_offsets`, the sum shows how far the task has read. In `task_end_offsets`, the sum shows
    where the partitions end. For example, if the sums are 700 and 1000, the task must still read 300 offsets.
    """

    subtopology_id: str = t.string()
    partition:      int = t.int32()
    offset:         int = t.int64()


class TaskIds(Struct):
    """The tasks of one subtopology. Task 3, for example, reads partition 3 of each topic of the subtopology."""

    subtopology_id: str       = t.string()
    partitions:     list[int] = t.array(t.int32)


class StreamsGroupHeartbeatRequest(Request, api_key=ApiKey.STREAMS_GROUP_HEARTBEAT, versions="0", flexible="0+"):
    """Contains the topology of the application, and the tasks that the member owns now.

    The member chooses its own id. To join the group, it sends the member epoch 0 and the topology. To leave the
    group, it sends the member epoch -1.

    If a nullable field has not changed since the previous heartbeat, the member can send null.
    """

    class Topology(Struct):
        class Subtopology(Struct):
            class TopicInfo(Struct):
                name:               str            = t.string()
                partitions:         int            = t.int32()
                replication_factor: int            = t.int16()
                topic_configs:      list[KeyValue] = t.array(KeyValue)

            class CopartitionGroup(Struct):
                source_topics:             list[int] = t.array(t.int16)
                source_topic_regex:        list[int] = t.array(t.int16)
                repartition_source_topics: list[int] = t.array(t.int16)

            subtopology_id:            str                    = t.string()
            source_topics:             list[str]              = t.array(t.string)
            source_topic_regex:        list[str]              = t.array(t.string)
            state_changelog_topics:    list[TopicInfo]        = t.array(TopicInfo)
            repartition_sink_topics:   list[str]              = t.array(t.string)
            repartition_source_topics: list[TopicInfo]        = t.array(TopicInfo)
            copartition_groups:        list[CopartitionGroup] = t.array(CopartitionGroup)

        epoch:         int               = t.int32()
        subtopologies: list[Subtopology] = t.array(Subtopology)

    group_id:                   str                     = t.string()
    member_id:                  str                     = t.string()
    member_epoch:               int                     = t.int32()
    endpoint_information_epoch: int                     = t.int32()
    instance_id:                str | None              = t.string(nullable="0+", default=None)
    rack_id:                    str | None              = t.string(nullable="0+", default=None)
    rebalance_timeout_ms:       int                     = t.int32(default=-1)
    topology:                   Topology | None         = t.struct(Topology, nullable="0+", default=None)
    active_tasks:               list[TaskIds] | None    = t.array(TaskIds, nullable="0+", default=None)
    standby_tasks:              list[TaskIds] | None    = t.array(TaskIds, nullable="0+", default=None)
    warmup_tasks:               list[TaskIds] | None    = t.array(TaskIds, nullable="0+", default=None)
    process_id:                 str | None              = t.string(nullable="0+", default=None)
    user_endpoint:              Endpoint | None         = t.struct(Endpoint, nullable="0+", default=None)
    client_tags:                list[KeyValue] | None   = t.array(KeyValue, nullable="0+", default=None)
    task_offsets:               list[TaskOffset] | None = t.array(TaskOffset, nullable="0+", default=None)
    task_end_offsets:           list[TaskOffset] | None = t.array(TaskOffset, nullable="0+", default=None)
    shutdown_application:       bool                    = t.boolean()


class StreamsGroupHeartbeatResponse(Response, api_key=ApiKey.STREAMS_GROUP_HEARTBEAT, versions="0", flexible="0+"):
    """Contains the member's epoch, its tasks if they have changed, and problems that the broker has found.

    A process of the application can have an address at which it answers queries about its stored state. For each
    such address, the response can list the partitions of the process. A member then knows which process can answer
    a query.
    """

    class Status(Struct):
        status_code:   int = t.int8()
        status_detail: str = t.string()

    class EndpointToPartitions(Struct):
        class TopicPartition(Struct):
            topic:      str       = t.string()
            partitions: list[int] = t.array(t.int32)

        user_endpoint:      Endpoint             = t.struct(Endpoint)
        active_partitions:  list[TopicPartition] = t.array(TopicPartition)
        standby_partitions: list[TopicPartition] = t.array(TopicPartition)

    throttle_time_ms:            int                               = t.int32()
    error_code:                  int                               = t.int16()
    error_message:               str | None                        = t.string(nullable="0+", default=None)
    member_id:                   str                               = t.string()
    member_epoch:                int                               = t.int32()
    heartbeat_interval_ms:       int                               = t.int32()
    acceptable_recovery_lag:     int                               = t.int32()
    task_offset_interval_ms:     int                               = t.int32()
    status:                      list[Status] | None               = t.array(Status, nullable="0+")
    active_tasks:                list[TaskIds] | None              = t.array(TaskIds, nullable="0+", default=None)
    standby_tasks:               list[TaskIds] | None              = t.array(TaskIds, nullable="0+", default=None)
    warmup_tasks:                list[TaskIds] | None              = t.array(TaskIds, nullable="0+", default=None)
    endpoint_information_epoch:  int                               = t.int32()
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = t.array(EndpointToPartitions, nullable="0+", default=None)
