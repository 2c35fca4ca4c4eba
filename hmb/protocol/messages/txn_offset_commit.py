"""TxnOffsetCommit (28): commit offsets of a group together with a transaction (KIP-98, KIP-447).

The offsets become visible when the transaction commits. The offsets are discarded when the transaction aborts.
"""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class TxnOffsetCommitRequest(Request, api_key=ApiKey.TXN_OFFSET_COMMIT, versions="0-5", flexible="3+"):
    """The offsets to commit within the producer's transaction.

    Version 2 adds leader epochs. Version 3 is flexible and adds the group's member and generation (KIP-447). Version 4
    allows the error TRANSACTION_ABORTABLE. Producers of transaction version 2 send version 5 and omit the
    AddOffsetsToTxn request (KIP-890). Version 1 equals version 0.
    """

    class TxnOffsetCommitRequestTopic(Struct):
        class TxnOffsetCommitRequestPartition(Struct):
            partition_index:        int        = t.int32()
            committed_offset:       int        = t.int64()
            committed_leader_epoch: int        = t.int32("2+", default=-1, ignorable=True)
            committed_metadata:     str | None = t.string(nullable="0+")

        name:       str                                   = t.string()
        partitions: list[TxnOffsetCommitRequestPartition] = t.array(TxnOffsetCommitRequestPartition)

    transactional_id:  str                               = t.string()
    group_id:          str                               = t.string()
    producer_id:       int                               = t.int64()
    producer_epoch:    int                               = t.int16()
    generation_id:     int                               = t.int32("3+", default=-1)
    member_id:         str                               = t.string("3+")
    group_instance_id: str | None                        = t.string("3+", nullable="3+", default=None)
    topics:            list[TxnOffsetCommitRequestTopic] = t.array(TxnOffsetCommitRequestTopic)


class TxnOffsetCommitResponse(Response, api_key=ApiKey.TXN_OFFSET_COMMIT, versions="0-5", flexible="3+"):
    """An error code for each partition.

    Version 3 is flexible and allows errors about the group's member and generation.
    """

    class TxnOffsetCommitResponseTopic(Struct):
        class TxnOffsetCommitResponsePartition(Struct):
            partition_index: int = t.int32()
            error_code:      int = t.int16()

        name:       str                                    = t.string()
        partitions: list[TxnOffsetCommitResponsePartition] = t.array(TxnOffsetCommitResponsePartition)

    throttle_time_ms: int                                = t.int32()
    topics:           list[TxnOffsetCommitResponseTopic] = t.array(TxnOffsetCommitResponseTopic)
