"""DescribeLogDirs (35): the size of partitions on disk (KIP-113)."""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class DescribeLogDirsRequest(Request, api_key=ApiKey.DESCRIBE_LOG_DIRS, versions="0-5", flexible="2+"):
    """Ask for these topics' partitions; null means all.  v2: flexible.  v1, v3, v4, v5: no change."""

    class DescribableLogDirTopic(Struct):
        topic:      str       = t.string()
        partitions: list[int] = t.array(t.int32)

    topics: list[DescribableLogDirTopic] | None = t.array(DescribableLogDirTopic, nullable="0+")


class DescribeLogDirsResponse(Response, api_key=ApiKey.DESCRIBE_LOG_DIRS, versions="0-5", flexible="2+"):
    """Each data directory.  v2: flexible.  v3: an error for all.  v4: size of the disk, and what is free of it
    (KIP-827).  v5: whether new partitions may come into it (KIP-1066).
    """

    class DescribeLogDirsResult(Struct):
        class DescribeLogDirsTopic(Struct):
            class DescribeLogDirsPartition(Struct):
                partition_index: int  = t.int32()
                partition_size:  int  = t.int64()
                offset_lag:      int  = t.int64()
                is_future_key:   bool = t.boolean()

            name:       str                            = t.string()
            partitions: list[DescribeLogDirsPartition] = t.array(DescribeLogDirsPartition)

        error_code:   int                        = t.int16()
        log_dir:      str                        = t.string()
        topics:       list[DescribeLogDirsTopic] = t.array(DescribeLogDirsTopic)
        total_bytes:  int                        = t.int64("4+", default=-1, ignorable=True)
        usable_bytes: int                        = t.int64("4+", default=-1, ignorable=True)
        is_cordoned:  bool                       = t.boolean("5+", ignorable=True)

    throttle_time_ms: int                         = t.int32()
    error_code:       int                         = t.int16("3+", ignorable=True)
    results:          list[DescribeLogDirsResult] = t.array(DescribeLogDirsResult)
