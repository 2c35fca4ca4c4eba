"""OffsetCommit (8): how far a group has read, so that whoever takes over a partition goes on from there."""

from uuid import UUID

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class OffsetCommitRequest(Request, api_key=ApiKey.OFFSET_COMMIT, versions="0-10", flexible="8+"):
    """Write down these offsets: the next ones to be read.

    v0: of the days when offsets lay in ZooKeeper.  v1: who commits, and a time for each partition.  v2: a retention
    time for all in place of it.  v5: none, the broker's setting holds (KIP-211).  v6: leader epoch.  v7: static
    members.  v8: flexible.  v9: members of KIP-848's groups too, by their epoch.  v10: topic ids.  v3, v4: no change.
    """

    class OffsetCommitRequestTopic(Struct):
        class OffsetCommitRequestPartition(Struct):
            partition_index:        int        = t.int32()
            committed_offset:       int        = t.int64()
            committed_leader_epoch: int        = t.int32("6+", default=-1, ignorable=True)
            commit_timestamp:       int        = t.int64("1", default=-1, ignorable=True)
            committed_metadata:     str | None = t.string(nullable="0+")

        name:       str                                = t.string("0-9", ignorable=True)
        topic_id:   UUID                               = t.uuid("10+", ignorable=True)
        partitions: list[OffsetCommitRequestPartition] = t.array(OffsetCommitRequestPartition)

    group_id:                      str                            = t.string()
    generation_id_or_member_epoch: int                            = t.int32("1+", default=-1, ignorable=True)
    member_id:                     str                            = t.string("1+", ignorable=True)
    group_instance_id:             str | None                     = t.string("7+", nullable="7+", default=None)
    retention_time_ms:             int                            = t.int64("2-4", default=-1, ignorable=True)
    topics:                        list[OffsetCommitRequestTopic] = t.array(OffsetCommitRequestTopic)


class OffsetCommitResponse(Response, api_key=ApiKey.OFFSET_COMMIT, versions="0-10", flexible="8+"):
    """Each partition's success or error.

    v3: throttle time.  v8: flexible.  v10: topic ids.  The others are like the one before.
    """

    class OffsetCommitResponseTopic(Struct):
        class OffsetCommitResponsePartition(Struct):
            partition_index: int = t.int32()
            error_code:      int = t.int16()

        name:       str                                 = t.string("0-9", ignorable=True)
        topic_id:   UUID                                = t.uuid("10+", ignorable=True)
        partitions: list[OffsetCommitResponsePartition] = t.array(OffsetCommitResponsePartition)

    throttle_time_ms: int                             = t.int32("3+", ignorable=True)
    topics:           list[OffsetCommitResponseTopic] = t.array(OffsetCommitResponseTopic)
