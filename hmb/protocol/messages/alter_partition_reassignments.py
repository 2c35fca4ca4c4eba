"""AlterPartitionReassignments (45): move partitions to other brokers (KIP-455)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class AlterPartitionReassignmentsRequest(
    Request, api_key=ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions="0-1", flexible="0+"
):
    """A request to move partitions. `replicas` contains the ids of the brokers that will store the partition.

    If `replicas` is null, the request cancels the current move of the partition.

    Version 1 adds `allow_replication_factor_change`. If this flag is false, a request must not change the number of
    brokers that store a partition.
    """

    class ReassignableTopic(Struct):
        class ReassignablePartition(Struct):
            partition_index: int              = t.int32()
            replicas:        list[int] | None = t.array(t.int32, nullable="0+", default=None)

        name:       str                         = t.string()
        partitions: list[ReassignablePartition] = t.array(ReassignablePartition)

    timeout_ms:                      int                     = t.int32(default=60000)
    allow_replication_factor_change: bool                    = t.boolean("1+", default=True)
    topics:                          list[ReassignableTopic] = t.array(ReassignableTopic)


class AlterPartitionReassignmentsResponse(
    Response, api_key=ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions="0-1", flexible="0+"
):
    """An error code for each partition.

    Version 1 adds `allow_replication_factor_change`, which has the same value as in the request.
    """

    class ReassignableTopicResponse(Struct):
        class ReassignablePartitionResponse(Struct):
            partition_index: int        = t.int32()
            error_code:      int        = t.int16()
            error_message:   str | None = t.string(nullable="0+")

        name:       str                                 = t.string()
        partitions: list[ReassignablePartitionResponse] = t.array(ReassignablePartitionResponse)

    throttle_time_ms:                int                             = t.int32()
    allow_replication_factor_change: bool                            = t.boolean("1+", default=True, ignorable=True)
    error_code:                      int                             = t.int16()
    error_message:                   str | None                      = t.string(nullable="0+")
    responses:                       list[ReassignableTopicResponse] = t.array(ReassignableTopicResponse)
