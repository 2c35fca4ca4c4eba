"""ReadShareGroupStateSummary (87): return the start offsets of share-partitions (KIP-932).

When a client asks for the offsets of a share group, the group coordinator sends ReadShareGroupStateSummary to the share
coordinator. The response does not contain the states of the records.
"""

from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class ReadShareGroupStateSummaryRequest(
    Request, api_key=ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions="0-1", flexible="0+"
):
    """Lists the share-partitions whose start offsets the client requests.

    Version 1 has the same layout as version 0.
    """

    class ReadStateSummaryData(Struct):
        class PartitionData(Struct):
            partition:    int = t.int32()
            leader_epoch: int = t.int32()

        topic_id:   UUID                = t.uuid()
        partitions: list[PartitionData] = t.array(PartitionData)

    group_id: str                        = t.string()
    topics:   list[ReadStateSummaryData] = t.array(ReadStateSummaryData)


class ReadShareGroupStateSummaryResponse(
    Response, api_key=ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions="0-1", flexible="0+"
):
    """The start offset of each share-partition.

    Version 1 adds a count (KIP-1226): how many records at or after the start offset need no further delivery.
    """

    class ReadStateSummaryResult(Struct):
        class PartitionResult(Struct):
            partition:               int        = t.int32()
            error_code:              int        = t.int16()
            error_message:           str | None = t.string(nullable="0+", default=None)
            state_epoch:             int        = t.int32()
            leader_epoch:            int        = t.int32()
            start_offset:            int        = t.int64()
            delivery_complete_count: int        = t.int32("1+", default=-1, ignorable=True)

        topic_id:   UUID                  = t.uuid()
        partitions: list[PartitionResult] = t.array(PartitionResult)

    results: list[ReadStateSummaryResult] = t.array(ReadStateSummaryResult)
