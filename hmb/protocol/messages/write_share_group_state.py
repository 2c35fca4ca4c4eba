"""WriteShareGroupState (85): store changes of the state of share-partitions (KIP-932).

The leader of a partition sends WriteShareGroupState to the share coordinator, for example after a member has
acknowledged records.
"""

from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class WriteShareGroupStateRequest(Request, api_key=ApiKey.WRITE_SHARE_GROUP_STATE, versions="0-1", flexible="0+"):
    """A request to store the state of share-partitions (partitions that a share group reads).

    It contains each partition's start offset and the batches of records with a new delivery state. Version 1 adds
    the number of records whose delivery is complete (KIP-1226).
    """

    class WriteStateData(Struct):
        class PartitionData(Struct):
            class StateBatch(Struct):
                first_offset:   int = t.int64()
                last_offset:    int = t.int64()
                delivery_state: int = t.int8()
                delivery_count: int = t.int16()

            partition:               int              = t.int32()
            state_epoch:             int              = t.int32()
            leader_epoch:            int              = t.int32()
            start_offset:            int              = t.int64()
            delivery_complete_count: int              = t.int32("1+", default=-1, ignorable=True)
            state_batches:           list[StateBatch] = t.array(StateBatch)

        topic_id:   UUID                = t.uuid()
        partitions: list[PartitionData] = t.array(PartitionData)

    group_id: str                  = t.string()
    topics:   list[WriteStateData] = t.array(WriteStateData)


class WriteShareGroupStateResponse(Response, api_key=ApiKey.WRITE_SHARE_GROUP_STATE, versions="0-1", flexible="0+"):
    """The result for each share-partition. Version 1 has the same layout as version 0."""

    class WriteStateResult(Struct):
        class PartitionResult(Struct):
            partition:     int        = t.int32()
            error_code:    int        = t.int16()
            error_message: str | None = t.string(nullable="0+", default=None)

        topic_id:   UUID                  = t.uuid()
        partitions: list[PartitionResult] = t.array(PartitionResult)

    results: list[WriteStateResult] = t.array(WriteStateResult)
