"""OffsetForLeaderEpoch (23): return the offset at which a leader epoch ended (KIP-101, KIP-320).

A consumer uses this request to detect that a log has lost records. When the leader of a partition changes, the
partition gets a new leader epoch. The consumer then sends the leader epoch of the last record that it has read.
For example, the consumer has read the offsets 0 to 9 in epoch 3. The broker responds that epoch 3 has the end
offset 8, so the last record of this epoch has offset 7. The log has therefore lost the records at offsets 8 and
9.
"""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class OffsetForLeaderEpochRequest(Request, api_key=ApiKey.OFFSET_FOR_LEADER_EPOCH, versions="0-4", flexible="4+"):
    """Asks for the end offset of one leader epoch in each partition.

    Version 2 adds `current_leader_epoch`, the newest leader epoch of the partition that the client knows. If the
    client's metadata is old, the broker responds with an error. Version 3 adds the replica id of the client (-1 for
    a consumer). Version 4 uses the flexible encoding (KIP-482).
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

    If the log has no records of this epoch, the response contains the next smaller epoch and its end offset. For
    example, for epoch 5 in a log with the epochs 2, 3 and 7, the response contains epoch 3.

    Version 0 contains only the end offset. Version 1 adds the epoch. Version 2 adds the throttle time. Version 4 uses
    the flexible encoding (KIP-482).
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
