"""DescribeProducers (61): return the producers that write to a partition, and their open transactions (KIP-664)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class DescribeProducersRequest(Request, api_key=ApiKey.DESCRIBE_PRODUCERS, versions="0", flexible="0+"):
    """The partitions to describe."""

    class TopicRequest(Struct):
        name:              str       = t.string()
        partition_indexes: list[int] = t.array(t.int32)

    topics: list[TopicRequest] = t.array(TopicRequest)


class DescribeProducersResponse(Response, api_key=ApiKey.DESCRIBE_PRODUCERS, versions="0", flexible="0+"):
    """The producers that the broker remembers for each partition.

    If a producer has an open transaction, the response contains the first offset of this transaction.
    """

    class TopicResponse(Struct):
        class PartitionResponse(Struct):
            class ProducerState(Struct):
                producer_id:              int = t.int64()
                producer_epoch:           int = t.int32()
                last_sequence:            int = t.int32(default=-1)
                last_timestamp:           int = t.int64(default=-1)
                coordinator_epoch:        int = t.int32()
                current_txn_start_offset: int = t.int64(default=-1)

            partition_index:  int                 = t.int32()
            error_code:       int                 = t.int16()
            error_message:    str | None          = t.string(nullable="0+", default=None)
            active_producers: list[ProducerState] = t.array(ProducerState)

        name:       str                     = t.string()
        partitions: list[PartitionResponse] = t.array(PartitionResponse)

    throttle_time_ms: int                 = t.int32()
    topics:           list[TopicResponse] = t.array(TopicResponse)
