"""DeleteShareGroupState (86): delete the state of share-partitions (KIP-932).

The group coordinator sends DeleteShareGroupState to the share coordinator, for example when a share group is deleted.
"""

from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class DeleteShareGroupStateRequest(Request, api_key=ApiKey.DELETE_SHARE_GROUP_STATE, versions="0", flexible="0+"):
    """The share-partitions whose state the share coordinator must delete."""

    class DeleteStateData(Struct):
        class PartitionData(Struct):
            partition: int = t.int32()

        topic_id:   UUID                = t.uuid()
        partitions: list[PartitionData] = t.array(PartitionData)

    group_id: str                   = t.string()
    topics:   list[DeleteStateData] = t.array(DeleteStateData)


class DeleteShareGroupStateResponse(Response, api_key=ApiKey.DELETE_SHARE_GROUP_STATE, versions="0", flexible="0+"):
    """The result for each share-partition."""

    class DeleteStateResult(Struct):
        class PartitionResult(Struct):
            partition:     int        = t.int32()
            error_code:    int        = t.int16()
            error_message: str | None = t.string(nullable="0+", default=None)

        topic_id:   UUID                  = t.uuid()
        partitions: list[PartitionResult] = t.array(PartitionResult)

    results: list[DeleteStateResult] = t.array(DeleteStateResult)
