"""Fetch (1): read records from an offset on; wait for them if there are none (a long poll).

The broker answers when it has `min_bytes` or `max_wait_ms` is over.  `records` is cut from the log as it lies there:
it may begin before the offset asked for (a batch is never split) and may end in the middle of a batch.
From v7 on a *fetch session* (KIP-227) spares client and broker the partitions in which nothing has changed.
"""

from uuid import UUID

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.primitives import RecordsInFile
from hmb.protocol.schema import Request, Response, Struct


class FetchRequest(Request, api_key=ApiKey.FETCH, versions="0-18", flexible="12+"):
    """Read from these partitions.

    v0, v1: the client understands message format 0.  v2: format 1.  v3: a limit for the answer as a whole, and the
    order of partitions counts (KIP-74).  v4: format 2, isolation level.  v5: a follower tells its log start offset.
    v7: sessions.  v9: leader epochs (KIP-320).  v10: zstd.  v11: rack, to read from a near replica (KIP-392).
    v12: flexible; a follower learns where its log diverges.  v13: topic ids in place of names.  v15: `replica_state` in
    place of `replica_id` (KIP-903).  v17, v18: what a KRaft follower tells.  v6, v8, v14, v16: no change.
    """

    class ReplicaState(Struct):
        replica_id:    int = t.int32(default=-1)  # -1: a consumer
        replica_epoch: int = t.int64(default=-1)

    class FetchTopic(Struct):
        class FetchPartition(Struct):
            partition:            int  = t.int32()
            current_leader_epoch: int  = t.int32("9+", default=-1, ignorable=True)
            fetch_offset:         int  = t.int64()
            last_fetched_epoch:   int  = t.int32("12+", default=-1)
            log_start_offset:     int  = t.int64("5+", default=-1, ignorable=True)
            partition_max_bytes:  int  = t.int32()
            replica_directory_id: UUID = t.uuid("17+", tag=0, ignorable=True)
            high_watermark:       int  = t.int64("18+", tag=1, default=2**63 - 1, ignorable=True)

        topic:      str                  = t.string("0-12", ignorable=True)
        topic_id:   UUID                 = t.uuid("13+", ignorable=True)
        partitions: list[FetchPartition] = t.array(FetchPartition)

    class ForgottenTopic(Struct):
        topic:      str       = t.string("7-12", ignorable=True)
        topic_id:   UUID      = t.uuid("13+", ignorable=True)
        partitions: list[int] = t.array(t.int32)

    cluster_id:            str | None           = t.string("12+", nullable="12+", default=None, tag=0, ignorable=True)
    replica_id:            int                  = t.int32("0-14", default=-1)  # -1: a consumer
    replica_state:         ReplicaState         = t.struct(ReplicaState, "15+", tag=1)
    max_wait_ms:           int                  = t.int32()
    min_bytes:             int                  = t.int32()
    max_bytes:             int                  = t.int32("3+", default=2**31 - 1, ignorable=True)
    isolation_level:       int                  = t.int8("4+", ignorable=True)  # 0 read_uncommitted, 1 read_committed
    session_id:            int                  = t.int32("7+", ignorable=True)
    session_epoch:         int                  = t.int32("7+", default=-1, ignorable=True)  # -1: no session
    topics:                list[FetchTopic]     = t.array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = t.array(ForgottenTopic, "7+")  # leave the session
    rack_id:               str                  = t.string("11+", ignorable=True)


class FetchResponse(Response, api_key=ApiKey.FETCH, versions="0-18", flexible="12+"):
    """The records, and how far the log goes.

    v1: throttle time.  v4: last stable offset and aborted transactions.  v5: log start offset.  v7: sessions, and an
    error for the answer as a whole.  v11: a nearer replica to read from.  v12: flexible; divergence, current leader.
    v13: topic ids in place of names.  v16: the leader's address (KIP-951).  The others are like the one before.
    """

    class FetchableTopicResponse(Struct):
        class PartitionData(Struct):
            class EpochEndOffset(Struct):
                epoch:      int = t.int32(default=-1)
                end_offset: int = t.int64(default=-1)

            class LeaderIdAndEpoch(Struct):
                leader_id:    int = t.int32(default=-1)
                leader_epoch: int = t.int32(default=-1)

            class SnapshotId(Struct):
                end_offset: int = t.int64(default=-1)
                epoch:      int = t.int32(default=-1)

            class AbortedTransaction(Struct):
                producer_id:  int = t.int64()
                first_offset: int = t.int64()

            partition_index:        int              = t.int32()
            error_code:             int              = t.int16()
            high_watermark:         int              = t.int64()
            last_stable_offset:     int              = t.int64("4+", default=-1, ignorable=True)
            log_start_offset:       int              = t.int64("5+", default=-1, ignorable=True)
            diverging_epoch:        EpochEndOffset   = t.struct(EpochEndOffset, "12+", tag=0)
            current_leader:         LeaderIdAndEpoch = t.struct(LeaderIdAndEpoch, "12+", tag=1)
            snapshot_id:            SnapshotId       = t.struct(SnapshotId, "12+", tag=2)
            aborted_transactions:   list[AbortedTransaction] | None = t.array(
                AbortedTransaction, "4+", nullable="4+", ignorable=True
            )
            preferred_read_replica: int              = t.int32("11+", default=-1)
            records:                memoryview | RecordsInFile | None = t.records(nullable="0+")

        topic:      str                 = t.string("0-12", ignorable=True)
        topic_id:   UUID                = t.uuid("13+", ignorable=True)
        partitions: list[PartitionData] = t.array(PartitionData)

    class NodeEndpoint(Struct):
        node_id: int        = t.int32()
        host:    str        = t.string()
        port:    int        = t.int32()
        rack:    str | None = t.string(nullable="0+", default=None)

    throttle_time_ms: int                          = t.int32("1+", ignorable=True)
    error_code:       int                          = t.int16("7+", ignorable=True)
    session_id:       int                          = t.int32("7+")  # 0: no session
    responses:        list[FetchableTopicResponse] = t.array(FetchableTopicResponse)
    node_endpoints:   list[NodeEndpoint]           = t.array(NodeEndpoint, "16+", tag=0)
