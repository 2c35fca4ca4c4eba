"""OffsetFetch (9): the offsets that a group has committed."""

from uuid import UUID

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class OffsetFetchRequest(Request, api_key=ApiKey.OFFSET_FETCH, versions="0-10", flexible="6+"):
    """The group, and the partitions whose offsets the client asks for.

    Version 0 read the offsets from ZooKeeper. In version 2 null topics stand for all topics. Version 6 is flexible.
    Version 7 adds `require_stable`: the broker returns a retriable error while an open transaction has offsets to
    commit (KIP-447). Version 8 takes several groups (KIP-709). Version 9 adds the member (KIP-848). Version 10 has
    topic ids. Versions 1 and 3 to 5 each equal the previous version.
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
    """The committed offset of each partition.

    -1 means that the group has no committed offset. This case is not an error.

    Version 2 adds an error code for the whole group. Version 3 adds the throttle time. Version 5 adds the leader epoch.
    Version 6 is flexible. Version 8 has one entry for each group. Version 10 has topic ids. Every other version equals
    the previous version.
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
