"""DescribeTopicPartitions (75): return topics and their partitions, in pages (KIP-966)."""

from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class DescribeTopicPartitionsRequest(Request, api_key=ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions="0", flexible="0+"):
    """The topics to describe. An empty list means all topics.

    The response can contain a cursor. A client that sends this cursor in its next request gets the next page.
    """

    class TopicRequest(Struct):
        name: str = t.string()

    class Cursor(Struct):
        topic_name:      str = t.string()
        partition_index: int = t.int32()

    topics:                   list[TopicRequest] = t.array(TopicRequest)
    response_partition_limit: int                = t.int32(default=2000)
    cursor:                   Cursor | None      = t.struct(Cursor, nullable="0+", default=None)


class DescribeTopicPartitionsResponse(Response, api_key=ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions="0", flexible="0+"):
    """One page of topics. If more pages follow, the response contains a cursor for the next request."""

    class DescribeTopicPartitionsResponseTopic(Struct):
        class DescribeTopicPartitionsResponsePartition(Struct):
            error_code:               int              = t.int16()
            partition_index:          int              = t.int32()
            leader_id:                int              = t.int32()
            leader_epoch:             int              = t.int32(default=-1, ignorable=True)
            replica_nodes:            list[int]        = t.array(t.int32)
            isr_nodes:                list[int]        = t.array(t.int32)
            eligible_leader_replicas: list[int] | None = t.array(t.int32, nullable="0+", default=None)
            last_known_elr:           list[int] | None = t.array(t.int32, nullable="0+", default=None)
            offline_replicas:         list[int]        = t.array(t.int32, ignorable=True)

        error_code:                  int                                            = t.int16()
        name:                        str | None                                     = t.string(nullable="0+")
        topic_id:                    UUID                                           = t.uuid(ignorable=True)
        is_internal:                 bool                                           = t.boolean(ignorable=True)
        partitions: list[DescribeTopicPartitionsResponsePartition] = t.array(DescribeTopicPartitionsResponsePartition)
        topic_authorized_operations: int                                            = t.int32(default=-2147483648)

    class Cursor(Struct):
        topic_name:      str = t.string()
        partition_index: int = t.int32()

    throttle_time_ms: int                                        = t.int32(ignorable=True)
    topics:           list[DescribeTopicPartitionsResponseTopic] = t.array(DescribeTopicPartitionsResponseTopic)
    next_cursor:      Cursor | None                              = t.struct(Cursor, nullable="0+", default=None)
