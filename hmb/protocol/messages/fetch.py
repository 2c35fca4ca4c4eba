"""Fetch (1): read records, starting at a given offset. The broker can wait for enough records (a long poll).

The broker responds to a Fetch request when it has `min_bytes` bytes of records, or after `max_wait_ms` ms.

The field `records` of a Fetch response is a range of bytes from the log. The log consists of batches, and the range
begins with the batch that contains the requested offset. So the first record in the range can have a smaller offset
than the requested offset. The range can end in the middle of a batch.

In a *fetch session* (KIP-227, from version 7 on), the broker remembers the partitions that the client reads. Later
requests and responses of the session then contain only the partitions in which something has changed.
"""

from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.enums import INT32_MAX, INT64_MAX
from hmb.protocol.primitives import RecordsInFile
from hmb.protocol.schema import Request, Response, Struct


class FetchRequest(Request, api_key=ApiKey.FETCH, versions="0-18", flexible="12+"):
    """A request for records. It contains partitions, and for each partition the offset at which to begin.

    The version determines the format of the records in the response. Versions 0 and 1 ask for message format 0,
    versions 2 and 3 for message format 1, and all later versions for record batches.

    - Version 3 adds a limit in bytes for the whole response. The broker reads the partitions in the order of the
      request until the response reaches the limit (KIP-74).
    - Version 4 adds the isolation level.
    - Version 5 adds the log start offset of a follower.
    - Version 7 adds fetch sessions.
    - Version 9 adds leader epochs (KIP-320).
    - From version 10 on, the response may contain records that are compressed with zstd.
    - Version 11 adds the client's rack. A Kafka broker can then name a nearby replica to read from (KIP-392).
    - Version 12 uses the flexible encoding (KIP-482). It adds the leader epoch of the last record that the client has
      fetched. With this epoch, the broker finds out whether the client has records that the broker's log lacks.
    - Version 13 replaces topic names with topic ids.
    - Version 15 replaces `replica_id` with `replica_state` (KIP-903).
    - Versions 17 and 18 add fields for followers.

    Each version not listed has the same layout as the version before it.
    """

    @staticmethod
    def magic_of(version: int) -> int:
        """Return the record format (magic) that a Fetch request of this version asks for: 0, 1 or 2."""
        return min(version // 2, 2)

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
            high_watermark:       int  = t.int64("18+", tag=1, default=INT64_MAX, ignorable=True)

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
    max_bytes:             int                  = t.int32("3+", default=INT32_MAX, ignorable=True)
    isolation_level:       int                  = t.int8("4+", ignorable=True)  # 0: read_uncommitted, 1: read_committed
    session_id:            int                  = t.int32("7+", ignorable=True)
    session_epoch:         int                  = t.int32("7+", default=-1, ignorable=True)  # -1: no session
    topics:                list[FetchTopic]     = t.array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = t.array(ForgottenTopic, "7+")  # partitions to remove from the session
    rack_id:               str                  = t.string("11+", ignorable=True)


class FetchResponse(Response, api_key=ApiKey.FETCH, versions="0-18", flexible="12+"):
    """The records of each partition, and the partition's high watermark.

    - Version 1 adds the throttle time.
    - Version 4 adds the last stable offset and the aborted transactions.
    - Version 5 adds the log start offset.
    - Version 7 adds fetch sessions, and an error code for the whole response.
    - Version 11 adds the id of a replica near the client, from which the client should read.
    - Version 12 uses the flexible encoding (KIP-482). It adds the current leader of a partition, and the field
      `diverging_epoch`. The broker sets this field if the client has records that the broker's log lacks. The
      field contains a leader epoch, and the offset at which this epoch ends in the broker's log.
    - Version 13 replaces topic names with topic ids.
    - Version 16 adds the leader's address (KIP-951).

    Every other version has the same layout as the version before it.
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
            aborted_transactions: list[AbortedTransaction] | None = t.array(AbortedTransaction, "4+", nullable="4+", ignorable=True)
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
    session_id:       int                          = t.int32("7+")  # 0: the response belongs to no session
    responses:        list[FetchableTopicResponse] = t.array(FetchableTopicResponse)
    node_endpoints:   list[NodeEndpoint]           = t.array(NodeEndpoint, "16+", tag=0)


FIRST_FETCH_VERSION_OF_IDS = FetchRequest.first_version("topics.topic_id")
LAST_FETCH_VERSION_OF_NAMES = FIRST_FETCH_VERSION_OF_IDS - 1
