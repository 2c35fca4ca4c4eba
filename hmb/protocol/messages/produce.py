"""Produce (0): append records to partitions.

The format of `records` depends on the version. Versions 0 and 1 carry message sets of format 0, version 2 those of
format 1. Version 3 and later carry one record batch (format 2) for each partition. With acks=0 the broker sends no
response.
"""

from typing import ClassVar
from uuid import UUID

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class ProduceRequest(Request, api_key=ApiKey.PRODUCE, versions="0-13", flexible="9+"):
    """The records for each partition.

    Version 2 carries messages with timestamps (KIP-32). Version 3 carries record batches and adds transactions
    (KIP-98). Version 7 allows zstd. Version 9 is flexible. From version 11 on a producer can abort and continue after
    the error TRANSACTION_ABORTABLE (KIP-890). From version 12 on the first batch for a partition adds it to the
    transaction. Version 13 has topic ids in place of names (KIP-516). Versions 1, 4 to 6, 8 and 10 change only the
    response.
    """

    FIRST_VERSION_OF_ZSTD: ClassVar[int] = 7
    FIRST_VERSION_OF_ABORTABLE: ClassVar[int] = 11
    FIRST_VERSION_OF_ADDING: ClassVar[int] = 12

    class TopicProduceData(Struct):
        class PartitionProduceData(Struct):
            index:   int               = t.int32()
            records: memoryview | None = t.records(nullable="0+")

        name:           str                        = t.string("0-12", ignorable=True)
        topic_id:       UUID                       = t.uuid("13+", ignorable=True)
        partition_data: list[PartitionProduceData] = t.array(PartitionProduceData)

    transactional_id: str | None             = t.string("3+", nullable="3+", default=None)
    acks:             int                    = t.int16()  # -1: all replicas, 1: the leader, 0: no response
    timeout_ms:       int                    = t.int32()
    topic_data:       list[TopicProduceData] = t.array(TopicProduceData)


class ProduceResponse(Response, api_key=ApiKey.PRODUCE, versions="0-13", flexible="9+"):
    """The offset of the first record in each partition, or an error code.

    Version 1 adds the throttle time, at the *end*. Version 2 adds the log append time, which is -1 for records that
    keep their own timestamps. Version 5 adds the log start offset. Version 8 lists the invalid records of a rejected
    batch (KIP-467). Version 9 is flexible. Version 10 names the new leader along with the error NOT_LEADER_OR_FOLLOWER
    (KIP-951). Version 13 has topic ids in place of names.
    """

    class TopicProduceResponse(Struct):
        class PartitionProduceResponse(Struct):
            class BatchIndexAndErrorMessage(Struct):
                batch_index:               int        = t.int32()  # the record's index in its batch
                batch_index_error_message: str | None = t.string(nullable="0+", default=None)

            class LeaderIdAndEpoch(Struct):
                leader_id:    int = t.int32(default=-1)
                leader_epoch: int = t.int32(default=-1)

            index:              int              = t.int32()
            error_code:         int              = t.int16()
            base_offset:        int              = t.int64()
            log_append_time_ms: int              = t.int64("2+", default=-1, ignorable=True)
            log_start_offset:   int              = t.int64("5+", default=-1, ignorable=True)
            record_errors: list[BatchIndexAndErrorMessage] = t.array(BatchIndexAndErrorMessage, "8+", ignorable=True)
            error_message:      str | None       = t.string("8+", nullable="8+", default=None, ignorable=True)
            current_leader:     LeaderIdAndEpoch = t.struct(LeaderIdAndEpoch, "10+", tag=0)

        name:                str                            = t.string("0-12", ignorable=True)
        topic_id:            UUID                           = t.uuid("13+", ignorable=True)
        partition_responses: list[PartitionProduceResponse] = t.array(PartitionProduceResponse)

    class NodeEndpoint(Struct):
        node_id: int        = t.int32()
        host:    str        = t.string()
        port:    int        = t.int32()
        rack:    str | None = t.string(nullable="0+", default=None)

    responses:        list[TopicProduceResponse] = t.array(TopicProduceResponse)
    throttle_time_ms: int                        = t.int32("1+", ignorable=True)
    node_endpoints:   list[NodeEndpoint]         = t.array(NodeEndpoint, "10+", tag=0)
