"""Produce (0): append records to partitions.

The format of `records` in a Produce request depends on the version of the request. Versions 0 and 1 contain message
sets in format 0, and version 2 contains message sets in format 1. From version 3 on, each partition has one record
batch (format 2). If `acks` is 0, the broker sends no response.
"""

from typing import ClassVar
from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class ProduceRequest(Request, api_key=ApiKey.PRODUCE, versions="0-13", flexible="9+"):
    """The records for each partition.

    - Version 2 adds timestamps to the messages (KIP-32).
    - Version 3 contains record batches instead of messages, and adds the transactional id (KIP-98).
    - From version 7 on, records may be compressed with zstd.
    - Version 9 uses the flexible encoding (KIP-482).
    - From version 11 on, the response can contain the error TRANSACTION_ABORTABLE. The producer can then abort the
      transaction and continue with a new one (KIP-890).
    - From version 12 on, a producer does not send AddPartitionsToTxn. Its first batch for a partition adds the
      partition to the transaction.
    - Version 13 replaces topic names by topic ids (KIP-516).

    Versions 1, 4 to 6, 8 and 10 change only the response.
    """

    FIRST_VERSION_OF_ZSTD: ClassVar[int] = 7
    FIRST_VERSION_OF_ABORTABLE: ClassVar[int] = 11
    FIRST_VERSION_OF_ADDING: ClassVar[int] = 12

    @staticmethod
    def magic_of(version: int) -> int:
        """Return the message format (magic) of the records in this version of the request."""
        return 2 if version >= 3 else version // 2

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

    - Version 1 adds the throttle time as the *last* field. In most other responses, it is the first field.
    - Version 2 adds the log append time. It is -1 if the records keep the timestamps of the producer.
    - Version 5 adds the log start offset.
    - Version 8 adds the list of invalid records, for a batch that the broker has rejected (KIP-467).
    - Version 9 uses the flexible encoding (KIP-482).
    - Version 10 adds the new leader, for the error NOT_LEADER_OR_FOLLOWER (KIP-951).
    - Version 13 replaces topic names by topic ids.
    """

    class TopicProduceResponse(Struct):
        class PartitionProduceResponse(Struct):
            class BatchIndexAndErrorMessage(Struct):
                batch_index:               int        = t.int32()  # the position of the record in its batch, from 0 on
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


FIRST_PRODUCE_VERSION_OF_IDS = ProduceRequest.first_version("topic_data.topic_id")
