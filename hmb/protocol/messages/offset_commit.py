"""OffsetCommit (8): store the position of a consumer group in each partition.

The committed offset of a partition is the offset of the next record to read. If another member of the group takes over
the partition, this member starts to read at the committed offset.
"""

from typing import ClassVar
from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class OffsetCommitRequest(Request, api_key=ApiKey.OFFSET_COMMIT, versions="0-10", flexible="8+"):
    """The offsets that a group commits: for each partition, the offset of the next record to read.

    - Version 0: Kafka stored these offsets in ZooKeeper.
    - Version 1 adds the generation, the member id, and a timestamp for each partition.
    - Version 2 replaces the timestamps by one retention time: how long the broker keeps the offsets.
    - Version 5 removes the retention time. The broker uses its own setting instead (KIP-211).
    - Version 6 adds the leader epoch.
    - Version 7 adds `group_instance_id`, the id of a static member.
    - Version 8 uses the flexible encoding (KIP-482).
    - From version 9 on, members of KIP-848 groups can send this request, with a member epoch as the generation.
    - Version 10 replaces topic names by topic ids.

    Versions 3 and 4 do not change the layout.
    """

    FIRST_VERSION_OF_EPOCHS: ClassVar[int] = 9

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

    Version 3 adds the throttle time. Version 8 uses the flexible encoding (KIP-482). Version 10 replaces topic names by
    topic ids. Each version that is not named here has the same layout as the version before it.
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


FIRST_OFFSET_COMMIT_VERSION_OF_IDS = OffsetCommitRequest.first_version("topics.topic_id")
