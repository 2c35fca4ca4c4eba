"""Fetch (1): read records from an offset on, and wait for them if none have arrived yet (a long poll).

The broker answers when it has `min_bytes`, or when `max_wait_ms` are over. `records` is a range of bytes copied from
the log. The range may begin before the requested offset, because it begins with a whole batch. It may end in the middle
of a batch.

In a *fetch session* (KIP-227, from version 7 on), requests and responses omit the partitions in which nothing has
changed.
"""

from uuid import UUID

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.primitives import RecordsInFile
from hmb.protocol.schema import Request, Response, Struct


class FetchRequest(Request, api_key=ApiKey.FETCH, versions="0-18", flexible="12+"):
    """The partitions to read, with an offset for each.

    Versions 0 and 1 are for clients that read message format 0, version 2 for format 1. Version 3 adds a limit for the
    whole response, and the order of partitions matters (KIP-74). Version 4 adds record batches and the isolation level.
    Version 5 carries a follower's log start offset. Version 7 adds sessions. Version 9 adds leader epochs (KIP-320).
    Version 10 allows zstd. Version 11 adds the rack, so that a client can read from a near replica (KIP-392). Version
    12 is flexible and adds the epoch of the last fetched record, so that the broker can detect a diverged log. Version
    13 has topic ids in place of names. Version 15 has `replica_state` in place of `replica_id` (KIP-903). Versions 17
    and 18 add fields for followers. Versions 6, 8, 14 and 16 each equal the previous version.
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
    isolation_level:       int                  = t.int8("4+", ignorable=True)  # 0: read_uncommitted, 1: read_committed
    session_id:            int                  = t.int32("7+", ignorable=True)
    session_epoch:         int                  = t.int32("7+", default=-1, ignorable=True)  # -1: no session
    topics:                list[FetchTopic]     = t.array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = t.array(ForgottenTopic, "7+")  # partitions to remove from the session
    rack_id:               str                  = t.string("11+", ignorable=True)


class FetchResponse(Response, api_key=ApiKey.FETCH, versions="0-18", flexible="12+"):
    """The records of each partition, and the offsets at which its log starts and ends.

    Version 1 adds the throttle time. Version 4 adds the last stable offset and the aborted transactions. Version 5 adds
    the log start offset. Version 7 adds sessions, and an error code for the whole response. Version 11 names a near
    replica. Version 12 is flexible and adds the current leader and the offset at which the logs diverge. Version 13 has
    topic ids in place of names. Version 16 adds the leader's address (KIP-951). Every other version equals the previous
    version.
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
