"""TxnOffsetCommit (28): commit offsets of a consumer group as a part of a transaction (KIP-98, KIP-447).

The offsets in a TxnOffsetCommit request take effect when the transaction commits. When the transaction aborts, the
broker discards the offsets.
"""

from typing import ClassVar

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class TxnOffsetCommitRequest(Request, api_key=ApiKey.TXN_OFFSET_COMMIT, versions="0-5", flexible="3+"):
    """The offsets that the producer's transaction commits.

    Versions of this request:

    - Version 1 has the same layout as version 0.
    - Version 2 adds leader epochs.
    - Version 3 uses the flexible encoding (KIP-482). It adds the generation, the member id and the group instance
      id of the consumer (KIP-447).
    - From version 4 on, the response can contain the error TRANSACTION_ABORTABLE.
    - Version 5 is for producers that use the newer transaction protocol (KIP-890). These producers do not send
      AddOffsetsToTxn before this request.
    """

    FIRST_VERSION_OF_LOADING: ClassVar[int] = 2
    FIRST_VERSION_OF_ABORTABLE: ClassVar[int] = 4
    FIRST_VERSION_OF_ADDING: ClassVar[int] = 5

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

    Version 3 uses the flexible encoding (KIP-482) and can contain errors about the member id and the generation, for
    example ILLEGAL_GENERATION.
    """

    class TxnOffsetCommitResponseTopic(Struct):
        class TxnOffsetCommitResponsePartition(Struct):
            partition_index: int = t.int32()
            error_code:      int = t.int16()

        name:       str                                    = t.string()
        partitions: list[TxnOffsetCommitResponsePartition] = t.array(TxnOffsetCommitResponsePartition)

    throttle_time_ms: int                                = t.int32()
    topics:           list[TxnOffsetCommitResponseTopic] = t.array(TxnOffsetCommitResponseTopic)
