"""OffsetForLeaderEpoch (23): return the offset at which a leader epoch ended (KIP-101, KIP-320).

A consumer uses this request to detect that a log has lost records. For example, a consumer has read offsets 0
to 9, all in leader epoch 3. Then the leader of the partition changes, and the consumer asks the new leader for
the end offset of epoch 3. The end offset is the offset after the last record of an epoch. The new leader
responds with 8. So its log has lost the records at offsets 8 and 9.
"""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class OffsetForLeaderEpochRequest(Request, api_key=ApiKey.OFFSET_FOR_LEADER_EPOCH, versions="0-4", flexible="4+"):
    """Asks for the end offset of one leader epoch in each partition.

    Version 2 adds `current_leader_epoch`, the newest leader epoch that the client knows. If the partition has another
    leader epoch, the broker responds with an error. With -1, the broker does not compare the epochs.

    Version 3 adds the client's replica id (-1 for a consumer). Version 4 uses the flexible encoding (KIP-482).
    """

    class OffsetForLeaderTopic(Struct):
        class OffsetForLeaderPartition(Struct):
            partition:            int = t.int32()
            current_leader_epoch: int = t.int32("2+", default=-1, ignorable=True)
            leader_epoch:         int = t.int32()

        topic:      str                            = t.string()
        partitions: list[OffsetForLeaderPartition] = t.array(OffsetForLeaderPartition)

    replica_id: int                        = t.int32("3+", default=-2, ignorable=True)
    topics:     list[OffsetForLeaderTopic] = t.array(OffsetForLeaderTopic)


class OffsetForLeaderEpochResponse(Response, api_key=ApiKey.OFFSET_FOR_LEADER_EPOCH, versions="0-4", flexible="4+"):
    """The end offset of the requested leader epoch in each partition.

    The log may lack the requested epoch. For example, a log has only the epochs 2, 3 and 7:

    - For epoch 5, the response contains the next smaller epoch, 3, and the end offset of epoch 3.
    - Epoch 1 is smaller than all epochs. The response contains epoch 1 and the start offset of epoch 2.
    - Epoch 8 is greater than all epochs. The response contains -1 as the epoch and as the end offset.

    Version 0 contains only the end offset. Version 1 adds the epoch. Version 2 adds the throttle time. Version 4
    uses the flexible encoding (KIP-482).
    """

    class OffsetForLeaderTopicResult(Struct):
        class EpochEndOffset(Struct):
            error_code:   int = t.int16()
            partition:    int = t.int32()
            leader_epoch: int = t.int32("1+", default=-1, ignorable=True)
            end_offset:   int = t.int64(default=-1)

        topic:      str                  = t.string()
        partitions: list[EpochEndOffset] = t.array(EpochEndOffset)

    throttle_time_ms: int                              = t.int32("2+", ignorable=True)
    topics:           list[OffsetForLeaderTopicResult] = t.array(OffsetForLeaderTopicResult)
