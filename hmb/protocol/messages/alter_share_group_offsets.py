"""AlterShareGroupOffsets (91): change the offsets at which a share group without members starts to read (KIP-932)."""

from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class AlterShareGroupOffsetsRequest(Request, api_key=ApiKey.ALTER_SHARE_GROUP_OFFSETS, versions="0", flexible="0+"):
    """A request that changes the start offsets of a share group. It contains a new start offset for each partition."""

    class AlterShareGroupOffsetsRequestTopic(Struct):
        class AlterShareGroupOffsetsRequestPartition(Struct):
            partition_index: int = t.int32()
            start_offset:    int = t.int64()

        topic_name: str                                          = t.string()
        partitions: list[AlterShareGroupOffsetsRequestPartition] = t.array(AlterShareGroupOffsetsRequestPartition)

    group_id: str                                      = t.string()
    topics:   list[AlterShareGroupOffsetsRequestTopic] = t.array(AlterShareGroupOffsetsRequestTopic)


class AlterShareGroupOffsetsResponse(Response, api_key=ApiKey.ALTER_SHARE_GROUP_OFFSETS, versions="0", flexible="0+"):
    """The result for each partition."""

    class AlterShareGroupOffsetsResponseTopic(Struct):
        class AlterShareGroupOffsetsResponsePartition(Struct):
            partition_index: int        = t.int32()
            error_code:      int        = t.int16()
            error_message:   str | None = t.string(nullable="0+", default=None)

        topic_name: str                                           = t.string()
        topic_id:   UUID                                          = t.uuid()
        partitions: list[AlterShareGroupOffsetsResponsePartition] = t.array(AlterShareGroupOffsetsResponsePartition)

    throttle_time_ms: int                                       = t.int32()
    error_code:       int                                       = t.int16()
    error_message:    str | None                                = t.string(nullable="0+", default=None)
    responses:        list[AlterShareGroupOffsetsResponseTopic] = t.array(AlterShareGroupOffsetsResponseTopic)
