"""OffsetCommit (8): store the position of a consumer group in each partition.

When a partition gets a new owner in the group, the owner starts to read at the committed offset.
"""

from uuid import UUID

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class OffsetCommitRequest(Request, api_key=ApiKey.OFFSET_COMMIT, versions="0-10", flexible="8+"):
    """The offset of the next record to read, for each partition.

    Version 0 comes from the time when ZooKeeper stored the offsets. Version 1 adds the member, and a time for each
    partition. Version 2 replaces these times by one retention time. Version 5 removes the retention time, and the
    broker's setting applies (KIP-211). Version 6 adds the leader epoch. Version 7 adds static members. Version 8 is
    flexible. Version 9 also serves members of the consumer protocol, by their epoch (KIP-848). Version 10 has topic
    ids. Versions 3 and 4 each equal the previous version.
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
    """An error code for each partition.

    Version 3 adds the throttle time. Version 8 is flexible. Version 10 has topic ids. Every other version equals the
    previous version.
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
