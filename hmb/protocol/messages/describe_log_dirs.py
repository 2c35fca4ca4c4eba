"""DescribeLogDirs (35): return the sizes of partitions on disk (KIP-113)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class DescribeLogDirsRequest(Request, api_key=ApiKey.DESCRIBE_LOG_DIRS, versions="0-5", flexible="2+"):
    """The partitions to describe. Null means all partitions.

    Version 2 uses the flexible encoding (KIP-482). Versions 1 and 3 to 5 each have the same layout as the version
    before.
    """

    class DescribableLogDirTopic(Struct):
        topic:      str       = t.string()
        partitions: list[int] = t.array(t.int32)

    topics: list[DescribableLogDirTopic] | None = t.array(DescribableLogDirTopic, nullable="0+")


class DescribeLogDirsResponse(Response, api_key=ApiKey.DESCRIBE_LOG_DIRS, versions="0-5", flexible="2+"):
    """The partitions in each data directory, with their sizes in bytes.

    - Version 1 has the same layout as version 0.
    - Version 2 uses the flexible encoding (KIP-482).
    - Version 3 adds an error code for the whole response.
    - Version 4 adds the size of the disk and its free space (KIP-827).
    - Version 5 adds `is_cordoned`, which is true if the directory accepts no new partitions (KIP-1066).
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
