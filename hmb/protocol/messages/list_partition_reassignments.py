"""ListPartitionReassignments (46): return the partitions that are being moved to other brokers (KIP-455)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class ListPartitionReassignmentsRequest(
    Request, api_key=ApiKey.LIST_PARTITION_REASSIGNMENTS, versions="0", flexible="0+"
):
    """The partitions that the client asks for. Null means all partitions."""

    class ListPartitionReassignmentsTopics(Struct):
        name:              str       = t.string()
        partition_indexes: list[int] = t.array(t.int32)

    timeout_ms: int                                           = t.int32(default=60000)
    topics:     list[ListPartitionReassignmentsTopics] | None = t.array(ListPartitionReassignmentsTopics, nullable="0+", default=None)


class ListPartitionReassignmentsResponse(
    Response, api_key=ApiKey.LIST_PARTITION_REASSIGNMENTS, versions="0", flexible="0+"
):
    """The partitions that are being moved, with the replicas that each move adds and removes."""

    class OngoingTopicReassignment(Struct):
        class OngoingPartitionReassignment(Struct):
            partition_index:   int       = t.int32()
            replicas:          list[int] = t.array(t.int32)
            adding_replicas:   list[int] = t.array(t.int32)
            removing_replicas: list[int] = t.array(t.int32)

        name:       str                                = t.string()
        partitions: list[OngoingPartitionReassignment] = t.array(OngoingPartitionReassignment)

    throttle_time_ms: int                            = t.int32()
    error_code:       int                            = t.int16()
    error_message:    str | None                     = t.string(nullable="0+")
    topics:           list[OngoingTopicReassignment] = t.array(OngoingTopicReassignment)
