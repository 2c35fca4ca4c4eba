"""OffsetForLeaderEpoch (23): the offset at which a leader epoch ended (KIP-101, KIP-320).

A consumer sends this request when the leader of a partition has changed. The request contains the leader epoch of the
consumer's last record. If that epoch ended at an offset below the consumer's position, the log has lost records that
the consumer has read.
"""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class OffsetForLeaderEpochRequest(Request, api_key=ApiKey.OFFSET_FOR_LEADER_EPOCH, versions="0-4", flexible="4+"):
    """The leader epoch to look up in each partition.

    Version 2 adds the epoch that the client believes to be the current one. Version 3 adds the id of the replica.
    Version 4 is flexible.
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
    """The end offset of the greatest epoch that is not above the requested one.

    Version 1 adds the epoch that was found. Version 2 adds the throttle time. Version 4 is flexible.
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
