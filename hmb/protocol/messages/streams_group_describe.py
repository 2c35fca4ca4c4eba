"""StreamsGroupDescribe (89): return the state, the topology and the members of streams groups (KIP-1071)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.messages.streams_group_heartbeat import (
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    TaskIds,
    TaskOffset,
)
from hmb.protocol.schema import Request, Response, Struct

TopicInfo = StreamsGroupHeartbeatRequest.Topology.Subtopology.TopicInfo


class StreamsGroupDescribeRequest(Request, api_key=ApiKey.STREAMS_GROUP_DESCRIBE, versions="0", flexible="0+"):
    """A request to describe streams groups."""

    group_ids:                     list[str] = t.array(t.string)
    include_authorized_operations: bool      = t.boolean()


class StreamsGroupDescribeResponse(Response, api_key=ApiKey.STREAMS_GROUP_DESCRIBE, versions="0", flexible="0+"):
    """The state and the topology of each group, and the current and the target assignment of each of its members."""

    class DescribedGroup(Struct):
        class Topology(Struct):
            class Subtopology(Struct):
                subtopology_id:            str             = t.string()
                source_topics:             list[str]       = t.array(t.string)
                repartition_sink_topics:   list[str]       = t.array(t.string)
                state_changelog_topics:    list[TopicInfo] = t.array(TopicInfo)
                repartition_source_topics: list[TopicInfo] = t.array(TopicInfo)

            epoch:         int                      = t.int32()
            subtopologies: list[Subtopology] | None = t.array(Subtopology, nullable="0+", default=None)

        class Member(Struct):
            class Assignment(Struct):
                active_tasks:  list[TaskIds] = t.array(TaskIds)
                standby_tasks: list[TaskIds] = t.array(TaskIds)
                warmup_tasks:  list[TaskIds] = t.array(TaskIds)

            member_id:         str              = t.string()
            member_epoch:      int              = t.int32()
            instance_id:       str | None       = t.string(nullable="0+", default=None)
            rack_id:           str | None       = t.string(nullable="0+", default=None)
            client_id:         str              = t.string()
            client_host:       str              = t.string()
            topology_epoch:    int              = t.int32()
            process_id:        str              = t.string()
            user_endpoint:     Endpoint | None  = t.struct(Endpoint, nullable="0+", default=None)
            client_tags:       list[KeyValue]   = t.array(KeyValue)
            task_offsets:      list[TaskOffset] = t.array(TaskOffset)
            task_end_offsets:  list[TaskOffset] = t.array(TaskOffset)
            assignment:        Assignment       = t.struct(Assignment)
            target_assignment: Assignment       = t.struct(Assignment)
            is_classic:        bool             = t.boolean()

        error_code:            int             = t.int16()
        error_message:         str | None      = t.string(nullable="0+", default=None)
        group_id:              str             = t.string()
        group_state:           str             = t.string()
        group_epoch:           int             = t.int32()
        assignment_epoch:      int             = t.int32()
        topology:              Topology | None = t.struct(Topology, nullable="0+", default=None)
        members:               list[Member]    = t.array(Member)
        authorized_operations: int             = t.int32(default=-2147483648)

    throttle_time_ms: int                  = t.int32()
    groups:           list[DescribedGroup] = t.array(DescribedGroup)
