"""OffsetFetch (9): return the offsets that a group has committed."""

from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class OffsetFetchRequest(Request, api_key=ApiKey.OFFSET_FETCH, versions="0-10", flexible="6+"):
    """The group, and the partitions whose committed offsets the client asks for.

    - Version 0: Kafka read these offsets from ZooKeeper.
    - From version 2 on, null instead of a list of topics means all topics.
    - Version 6 uses the flexible encoding (KIP-482).
    - Version 7 adds `require_stable` (KIP-447). If it is true, the broker returns a retriable error for a partition
      as long as an open transaction contains an offset for it. The client then asks again later.
    - From version 8 on, a request can contain several groups (KIP-709).
    - Version 9 adds the member id and the member epoch (KIP-848).
    - Version 10 replaces topic names by topic ids.

    Versions 1 and 3 to 5 do not change the layout.
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
        member_id:    str | None = t.string("9+", nullable="9+", default=None, ignorable=True)
        member_epoch: int                                   = t.int32("9+", default=-1, ignorable=True)
        topics:       list[OffsetFetchRequestTopics] | None = t.array(OffsetFetchRequestTopics, "8+", nullable="8+")

    group_id:       str                                  = t.string("0-7")
    topics:         list[OffsetFetchRequestTopic] | None = t.array(OffsetFetchRequestTopic, "0-7", nullable="2-7")
    groups:         list[OffsetFetchRequestGroup]        = t.array(OffsetFetchRequestGroup, "8+")
    require_stable: bool                                 = t.boolean("7+")


class OffsetFetchResponse(Response, api_key=ApiKey.OFFSET_FETCH, versions="0-10", flexible="6+"):
    """The committed offset of each partition. The offset -1 means that the group has not committed one.

    A missing offset is not an error. These versions change the layout:

    - Version 2 adds an error code for the whole group.
    - Version 3 adds the throttle time.
    - Version 5 adds the leader epoch.
    - Version 6 uses the flexible encoding (KIP-482).
    - From version 8 on, a response can contain several groups.
    - Version 10 replaces topic names by topic ids.
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


FIRST_VERSION_OF_GROUP_ERRORS = OffsetFetchResponse.first_version("error_code")
FIRST_VERSION_OF_ALL_TOPICS = FIRST_VERSION_OF_GROUP_ERRORS  # from this version on, a request can ask for all topics
FIRST_VERSION_OF_GROUPS = OffsetFetchRequest.first_version("groups")
FIRST_OFFSET_FETCH_VERSION_OF_IDS = OffsetFetchRequest.first_version("groups.topics.topic_id")
