"""Produce (0): append records to partitions.

What `records` holds depends on the version: message sets of format 0 (v0, v1), of format 1 (v2), one record batch of
format 2 per partition (from v3 on).  With acks=0 there is no response at all.
"""

from typing import ClassVar
from uuid import UUID

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class ProduceRequest(Request, api_key=ApiKey.PRODUCE, versions="0-13", flexible="9+"):
    """Append record batches to partitions.

    v2: messages carry timestamps (KIP-32).  v3: record batches and transactions (KIP-98).  v7: zstd.  v9: flexible.
    v11: a client may abort and go on after TRANSACTION_ABORTABLE (KIP-890).  v12: a partition joins the transaction by
    being produced to.  v13: topic ids in place of names (KIP-516).  v1, v4-v6, v8, v10 change the response only.
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
    acks:             int                    = t.int16()  # -1 all, 1 leader, 0 no reply
    timeout_ms:       int                    = t.int32()
    topic_data:       list[TopicProduceData] = t.array(TopicProduceData)


class ProduceResponse(Response, api_key=ApiKey.PRODUCE, versions="0-13", flexible="9+"):
    """Where the records went, or why not.

    v1: throttle time, at the *end*.  v2: log append time (-1 where records keep the time of their creation).  v5: log
    start offset.  v8: which records of a refused batch were bad (KIP-467).  v9: flexible.  v10: the new leader and its
    address along with NOT_LEADER_OR_FOLLOWER (KIP-951).  v13: topic ids in place of names.
    """

    class TopicProduceResponse(Struct):
        class PartitionProduceResponse(Struct):
            class BatchIndexAndErrorMessage(Struct):
                batch_index:               int        = t.int32()  # of the record in its batch
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
