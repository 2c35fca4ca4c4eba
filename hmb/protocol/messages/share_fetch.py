"""ShareFetch (78): acquire records of a share group, and acknowledge records that were acquired before (KIP-932).

The broker chooses the records for a member of a share group. The response contains whole record batches. A batch can
also contain records that are not for this member. The list `acquired_records` shows which records the member has
acquired. The member must ignore all other records.

The broker remembers the partitions that a member reads. A member therefore does not have to list all its partitions in
every request. The broker stores them in a *share session*. The first request of a session has the session epoch 0 and
lists all partitions. A later request lists only two kinds of partitions: new ones, and those whose records the member
acknowledges.
"""

from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.enums import INT32_MAX
from hmb.protocol.primitives import RecordsInFile
from hmb.protocol.schema import Request, Response, Struct


class ShareFetchRequest(Request, api_key=ApiKey.SHARE_FETCH, versions="1-2", flexible="0+"):
    """The partitions from which a member wants records, and its acknowledgements of earlier records.

    - Version 0 exists only for the early access in Kafka 4.0. It has a limit in bytes for each partition. HMB does
      not support this version.
    - Version 1 limits the number of records (`max_records`).
    - Version 2 adds `share_acquire_mode` (KIP-1206). It also adds the acknowledgement type Renew: the member keeps
      the record for longer (KIP-1222).
    """

    class FetchTopic(Struct):
        class FetchPartition(Struct):
            class AcknowledgementBatch(Struct):
                first_offset:      int       = t.int64()
                last_offset:       int       = t.int64()
                acknowledge_types: list[int] = t.array(t.int8)

            partition_index:         int                        = t.int32()
            partition_max_bytes:     int                        = t.int32("0")
            acknowledgement_batches: list[AcknowledgementBatch] = t.array(AcknowledgementBatch)

        topic_id:   UUID                 = t.uuid()
        partitions: list[FetchPartition] = t.array(FetchPartition)

    class ForgottenTopic(Struct):
        topic_id:   UUID      = t.uuid()
        partitions: list[int] = t.array(t.int32)

    group_id:              str | None           = t.string(nullable="0+", default=None)
    member_id:             str | None           = t.string(nullable="0+")
    share_session_epoch:   int                  = t.int32()
    max_wait_ms:           int                  = t.int32()
    min_bytes:             int                  = t.int32()
    max_bytes:             int                  = t.int32(default=INT32_MAX)
    max_records:           int                  = t.int32("1+")
    batch_size:            int                  = t.int32("1+")
    share_acquire_mode:    int                  = t.int8("2+", ignorable=True)
    is_renew_ack:          bool                 = t.boolean("2+")
    topics:                list[FetchTopic]     = t.array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = t.array(ForgottenTopic)


class ShareFetchResponse(Response, api_key=ApiKey.SHARE_FETCH, versions="1-2", flexible="0+"):
    """The records of each partition, and which of them are acquired.

    Version 1 adds the duration of the acquisition lock: for this time, acquired records belong to one member only.
    Version 2 has the same layout as version 1.
    """

    class ShareFetchableTopicResponse(Struct):
        class PartitionData(Struct):
            class LeaderIdAndEpoch(Struct):
                leader_id:    int = t.int32()
                leader_epoch: int = t.int32()

            class AcquiredRecords(Struct):
                first_offset:   int = t.int64()
                last_offset:    int = t.int64()
                delivery_count: int = t.int16()

            partition_index:           int                   = t.int32()
            error_code:                int                   = t.int16()
            error_message:             str | None            = t.string(nullable="0+", default=None)
            acknowledge_error_code:    int                   = t.int16()
            acknowledge_error_message: str | None            = t.string(nullable="0+", default=None)
            current_leader:            LeaderIdAndEpoch      = t.struct(LeaderIdAndEpoch)
            records:  memoryview | RecordsInFile | None = t.records(nullable="0")
            acquired_records:          list[AcquiredRecords] = t.array(AcquiredRecords)

        topic_id:   UUID                = t.uuid()
        partitions: list[PartitionData] = t.array(PartitionData)

    class NodeEndpoint(Struct):
        node_id: int        = t.int32()
        host:    str        = t.string()
        port:    int        = t.int32()
        rack:    str | None = t.string(nullable="0+", default=None)

    throttle_time_ms:            int                               = t.int32()
    error_code:                  int                               = t.int16()
    error_message:               str | None                        = t.string(nullable="0+", default=None)
    acquisition_lock_timeout_ms: int                               = t.int32("1+")
    responses:                   list[ShareFetchableTopicResponse] = t.array(ShareFetchableTopicResponse)
    node_endpoints:              list[NodeEndpoint]                = t.array(NodeEndpoint)
