"""OffsetDelete (47): delete a group's committed offsets for topics that the group no longer reads (KIP-496)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class OffsetDeleteRequest(Request, api_key=ApiKey.OFFSET_DELETE, versions="0"):
    """The partitions whose committed offsets the broker deletes."""

    class OffsetDeleteRequestTopic(Struct):
        class OffsetDeleteRequestPartition(Struct):
            partition_index: int = t.int32()

        name:       str                                = t.string()
        partitions: list[OffsetDeleteRequestPartition] = t.array(OffsetDeleteRequestPartition)

    group_id: str                            = t.string()
    topics:   list[OffsetDeleteRequestTopic] = t.array(OffsetDeleteRequestTopic)


class OffsetDeleteResponse(Response, api_key=ApiKey.OFFSET_DELETE, versions="0"):
    """An error code for each partition."""

    class OffsetDeleteResponseTopic(Struct):
        class OffsetDeleteResponsePartition(Struct):
            partition_index: int = t.int32()
            error_code:      int = t.int16()

        name:       str                                 = t.string()
        partitions: list[OffsetDeleteResponsePartition] = t.array(OffsetDeleteResponsePartition)

    error_code:       int                             = t.int16()
    throttle_time_ms: int                             = t.int32(ignorable=True)
    topics:           list[OffsetDeleteResponseTopic] = t.array(OffsetDeleteResponseTopic)
