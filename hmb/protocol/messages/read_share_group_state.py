"""ReadShareGroupState (84): return the state of share-partitions (KIP-932).

The leader of a partition sends ReadShareGroupState to the share coordinator when a share group first reads the
partition.
"""

from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class ReadShareGroupStateRequest(Request, api_key=ApiKey.READ_SHARE_GROUP_STATE, versions="0", flexible="0+"):
    """The share-partitions whose state the leader requests, each with the partition's current leader epoch."""

    class ReadStateData(Struct):
        class PartitionData(Struct):
            partition:    int = t.int32()
            leader_epoch: int = t.int32()

        topic_id:   UUID                = t.uuid()
        partitions: list[PartitionData] = t.array(PartitionData)

    group_id: str                 = t.string()
    topics:   list[ReadStateData] = t.array(ReadStateData)


class ReadShareGroupStateResponse(Response, api_key=ApiKey.READ_SHARE_GROUP_STATE, versions="0", flexible="0+"):
    """The start offset of each share-partition, and the states of the records at or above this offset."""

    class ReadStateResult(Struct):
        class PartitionResult(Struct):
            class StateBatch(Struct):
                first_offset:   int = t.int64()
                last_offset:    int = t.int64()
                delivery_state: int = t.int8()
                delivery_count: int = t.int16()

            partition:     int              = t.int32()
            error_code:    int              = t.int16()
            error_message: str | None       = t.string(nullable="0+", default=None)
            state_epoch:   int              = t.int32()
            start_offset:  int              = t.int64()
            state_batches: list[StateBatch] = t.array(StateBatch)

        topic_id:   UUID                  = t.uuid()
        partitions: list[PartitionResult] = t.array(PartitionResult)

    results: list[ReadStateResult] = t.array(ReadStateResult)
