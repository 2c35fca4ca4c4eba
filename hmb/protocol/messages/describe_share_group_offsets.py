"""DescribeShareGroupOffsets (90): return the start offset of each partition that a share group reads (KIP-932)."""

from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class DescribeShareGroupOffsetsRequest(
    Request, api_key=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions="0-1", flexible="0+"
):
    """The groups and their partitions. If the list of topics is null, the response contains all partitions.

    Version 1 changes only the response.
    """

    class DescribeShareGroupOffsetsRequestGroup(Struct):
        class DescribeShareGroupOffsetsRequestTopic(Struct):
            topic_name: str       = t.string()
            partitions: list[int] = t.array(t.int32)

        group_id: str                                                = t.string()
        topics:   list[DescribeShareGroupOffsetsRequestTopic] | None = t.array(DescribeShareGroupOffsetsRequestTopic, nullable="0+")

    groups: list[DescribeShareGroupOffsetsRequestGroup] = t.array(DescribeShareGroupOffsetsRequestGroup)


class DescribeShareGroupOffsetsResponse(
    Response, api_key=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions="0-1", flexible="0+"
):
    """The start offset of each share-partition. Version 1 adds the lag (KIP-1226)."""

    class DescribeShareGroupOffsetsResponseGroup(Struct):
        class DescribeShareGroupOffsetsResponseTopic(Struct):
            class DescribeShareGroupOffsetsResponsePartition(Struct):
                partition_index: int        = t.int32()
                start_offset:    int        = t.int64()
                leader_epoch:    int        = t.int32()
                lag:             int        = t.int64("1+", default=-1, ignorable=True)
                error_code:      int        = t.int16()
                error_message:   str | None = t.string(nullable="0+", default=None)

            topic_name: str                                              = t.string()
            topic_id:   UUID                                             = t.uuid()
            partitions: list[DescribeShareGroupOffsetsResponsePartition] = t.array(DescribeShareGroupOffsetsResponsePartition)

        group_id:      str                                          = t.string()
        topics:        list[DescribeShareGroupOffsetsResponseTopic] = t.array(DescribeShareGroupOffsetsResponseTopic)
        error_code:    int                                          = t.int16()
        error_message: str | None                                   = t.string(nullable="0+", default=None)

    throttle_time_ms: int                                          = t.int32()
    groups:           list[DescribeShareGroupOffsetsResponseGroup] = t.array(DescribeShareGroupOffsetsResponseGroup)
