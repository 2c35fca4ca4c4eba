"""ShareAcknowledge (79): acknowledge records that a member of a share group has acquired (KIP-932).

A member can also put its acknowledgements into its next ShareFetch request. The member sends ShareAcknowledge if it
wants to acknowledge records without a new fetch, for example before it closes its share session.
"""

from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class ShareAcknowledgeRequest(Request, api_key=ApiKey.SHARE_ACKNOWLEDGE, versions="1-2", flexible="0+"):
    """The acknowledgements of a member.

    A batch of acknowledgements contains a range of offsets. The list `acknowledge_types` has one type for each offset
    in this range, or a single type for the whole range. Version 2 adds the type Renew (KIP-1222).
    """

    class AcknowledgeTopic(Struct):
        class AcknowledgePartition(Struct):
            class AcknowledgementBatch(Struct):
                first_offset:      int       = t.int64()
                last_offset:       int       = t.int64()
                acknowledge_types: list[int] = t.array(t.int8)

            partition_index:         int                        = t.int32()
            acknowledgement_batches: list[AcknowledgementBatch] = t.array(AcknowledgementBatch)

        topic_id:   UUID                       = t.uuid()
        partitions: list[AcknowledgePartition] = t.array(AcknowledgePartition)

    group_id:            str | None             = t.string(nullable="0+", default=None)
    member_id:           str | None             = t.string(nullable="0+")
    share_session_epoch: int                    = t.int32()
    is_renew_ack:        bool                   = t.boolean("2+")
    topics:              list[AcknowledgeTopic] = t.array(AcknowledgeTopic)


class ShareAcknowledgeResponse(Response, api_key=ApiKey.SHARE_ACKNOWLEDGE, versions="1-2", flexible="0+"):
    """The result for each partition.

    Version 2 adds the duration (ms) of the acquisition lock: for this time, the broker reserves a record for the member
    that acquires it.
    """

    class ShareAcknowledgeTopicResponse(Struct):
        class PartitionData(Struct):
            class LeaderIdAndEpoch(Struct):
                leader_id:    int = t.int32()
                leader_epoch: int = t.int32()

            partition_index: int              = t.int32()
            error_code:      int              = t.int16()
            error_message:   str | None       = t.string(nullable="0+", default=None)
            current_leader:  LeaderIdAndEpoch = t.struct(LeaderIdAndEpoch)

        topic_id:   UUID                = t.uuid()
        partitions: list[PartitionData] = t.array(PartitionData)

    class NodeEndpoint(Struct):
        node_id: int        = t.int32()
        host:    str        = t.string()
        port:    int        = t.int32()
        rack:    str | None = t.string(nullable="0+", default=None)

    throttle_time_ms:            int                                 = t.int32()
    error_code:                  int                                 = t.int16()
    error_message:               str | None                          = t.string(nullable="0+", default=None)
    acquisition_lock_timeout_ms: int                                 = t.int32("2+", ignorable=True)
    responses:                   list[ShareAcknowledgeTopicResponse] = t.array(ShareAcknowledgeTopicResponse)
    node_endpoints:              list[NodeEndpoint]                  = t.array(NodeEndpoint)
