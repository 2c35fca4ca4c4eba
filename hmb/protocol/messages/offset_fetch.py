"""OffsetFetch (9): the offsets that a group has committed."""

from uuid import UUID

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class OffsetFetchRequest(Request, api_key=ApiKey.OFFSET_FETCH, versions="0-10", flexible="6+"):
    """Ask for a group's offsets.

    v0: from ZooKeeper, in its day.  v2: null topics mean all.  v6: flexible.  v7: `require_stable` waits out
    transactions (KIP-447).  v8: several groups at once (KIP-709).  v9: the member that asks (KIP-848).  v10: topic
    ids.  v1, v3, v4, v5: no change.
    """

    class OffsetFetchRequestTopic(Struct):
        name:              str       = t.string("0-7")
        partition_indexes: list[int] = t.array(t.int32, "0-7")

    class OffsetFetchRequestGroup(Struct):
        class OffsetFetchRequestTopics(Struct):
            name:              str       = t.string("8-9", ignorable=True)
            topic_id:          UUID      = t.uuid("10+", ignorable=True)
            partition_indexes: list[int] = t.array(t.int32, "8+")

        group_id:     str                                   = t.string("8+")
        member_id:    str | None                            = t.string(
            "9+", nullable="9+", default=None, ignorable=True
        )
        member_epoch: int                                   = t.int32("9+", default=-1, ignorable=True)
        topics:       list[OffsetFetchRequestTopics] | None = t.array(OffsetFetchRequestTopics, "8+", nullable="8+")

    group_id:       str                                  = t.string("0-7")
    topics:         list[OffsetFetchRequestTopic] | None = t.array(OffsetFetchRequestTopic, "0-7", nullable="2-7")
    groups:         list[OffsetFetchRequestGroup]        = t.array(OffsetFetchRequestGroup, "8+")
    require_stable: bool                                 = t.boolean("7+")


class OffsetFetchResponse(Response, api_key=ApiKey.OFFSET_FETCH, versions="0-10", flexible="6+"):
    """The offsets; -1 where none was committed, which is no error.

    v2: an error for the group as a whole.  v3: throttle time.  v5: leader epoch.  v6: flexible.  v8: one entry a
    group.  v10: topic ids.  The others are like the one before.
    """

    class OffsetFetchResponseTopic(Struct):
        class OffsetFetchResponsePartition(Struct):
            partition_index:        int        = t.int32("0-7")
            committed_offset:       int        = t.int64("0-7")
            committed_leader_epoch: int        = t.int32("5-7", default=-1, ignorable=True)
            metadata:               str | None = t.string("0-7", nullable="0-7")
            error_code:             int        = t.int16("0-7")

        name:       str                                = t.string("0-7")
        partitions: list[OffsetFetchResponsePartition] = t.array(OffsetFetchResponsePartition, "0-7")

    class OffsetFetchResponseGroup(Struct):
        class OffsetFetchResponseTopics(Struct):
            class OffsetFetchResponsePartitions(Struct):
                partition_index:        int        = t.int32("8+")
                committed_offset:       int        = t.int64("8+")
                committed_leader_epoch: int        = t.int32("8+", default=-1, ignorable=True)
                metadata:               str | None = t.string("8+", nullable="8+")
                error_code:             int        = t.int16("8+")

            name:       str                                 = t.string("8-9", ignorable=True)
            topic_id:   UUID                                = t.uuid("10+", ignorable=True)
            partitions: list[OffsetFetchResponsePartitions] = t.array(OffsetFetchResponsePartitions, "8+")

        group_id:   str                             = t.string("8+")
        topics:     list[OffsetFetchResponseTopics] = t.array(OffsetFetchResponseTopics, "8+")
        error_code: int                             = t.int16("8+")

    throttle_time_ms: int                            = t.int32("3+", ignorable=True)
    topics:           list[OffsetFetchResponseTopic] = t.array(OffsetFetchResponseTopic, "0-7")
    error_code:       int                            = t.int16("2-7", ignorable=True)
    groups:           list[OffsetFetchResponseGroup] = t.array(OffsetFetchResponseGroup, "8+")
