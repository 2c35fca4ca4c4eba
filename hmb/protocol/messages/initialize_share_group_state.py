"""InitializeShareGroupState (83): create the state of share-partitions (KIP-932).

A *share-partition* is a partition that a share group reads. The group coordinator sends InitializeShareGroupState to
the share coordinator, which stores the state of the share-partition.
"""

from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class InitializeShareGroupStateRequest(
    Request, api_key=ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions="0", flexible="0+"
):
    """Contains the share-partitions, each with its state epoch and its start offset.

    A start offset of -1 means that the group coordinator does not know the start offset yet. The leader of the
    partition determines it later.
    """

    class InitializeStateData(Struct):
        class PartitionData(Struct):
            partition:    int = t.int32()
            state_epoch:  int = t.int32()
            start_offset: int = t.int64()

        topic_id:   UUID                = t.uuid()
        partitions: list[PartitionData] = t.array(PartitionData)

    group_id: str                       = t.string()
    topics:   list[InitializeStateData] = t.array(InitializeStateData)


class InitializeShareGroupStateResponse(
    Response, api_key=ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions="0", flexible="0+"
):
    """The result for each share-partition."""

    class InitializeStateResult(Struct):
        class PartitionResult(Struct):
            partition:     int        = t.int32()
            error_code:    int        = t.int16()
            error_message: str | None = t.string(nullable="0+", default=None)

        topic_id:   UUID                  = t.uuid()
        partitions: list[PartitionResult] = t.array(PartitionResult)

    results: list[InitializeStateResult] = t.array(InitializeStateResult)
