"""OffsetForLeaderEpoch (23): where a leader epoch ended in the log (KIP-101, KIP-320).

A consumer whose leader has changed asks where its last epoch ended: an end before its position means that records
which it has read were lost.
"""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class OffsetForLeaderEpochRequest(Request, api_key=ApiKey.OFFSET_FOR_LEADER_EPOCH, versions="0-4", flexible="4+"):
    """Ask for these epochs' ends.  v2: the epoch that the client knows to be current.  v3: who asks.  v4: flexible."""

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
    """The greatest epoch not above the one asked for, and the offset after its last record.

    v1: the epoch itself.  v2: throttle time.  v4: flexible.
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
