"""DeleteRecords (21): delete all records of a partition below an offset (KIP-107)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class DeleteRecordsRequest(Request, api_key=ApiKey.DELETE_RECORDS, versions="0-2", flexible="2+"):
    """An offset for each partition. The broker deletes the records below this offset.

    The offset -1 stands for the high watermark. Version 2 uses the flexible encoding (KIP-482).
    """

    class DeleteRecordsTopic(Struct):
        class DeleteRecordsPartition(Struct):
            partition_index: int = t.int32()
            offset:          int = t.int64()

        name:       str                          = t.string()
        partitions: list[DeleteRecordsPartition] = t.array(DeleteRecordsPartition)

    topics:     list[DeleteRecordsTopic] = t.array(DeleteRecordsTopic)
    timeout_ms: int                      = t.int32()


class DeleteRecordsResponse(Response, api_key=ApiKey.DELETE_RECORDS, versions="0-2", flexible="2+"):
    """The new log start offset (`low_watermark`) of each partition, or an error code.

    Version 2 uses the flexible encoding (KIP-482).
    """

    class DeleteRecordsTopicResult(Struct):
        class DeleteRecordsPartitionResult(Struct):
            partition_index: int = t.int32()
            low_watermark:   int = t.int64()
            error_code:      int = t.int16()

        name:       str                                = t.string()
        partitions: list[DeleteRecordsPartitionResult] = t.array(DeleteRecordsPartitionResult)

    throttle_time_ms: int                            = t.int32()
    topics:           list[DeleteRecordsTopicResult] = t.array(DeleteRecordsTopicResult)
