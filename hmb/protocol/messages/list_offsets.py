"""ListOffsets (2): which offset a point in time has.  Older texts call it "Offset API".

Besides real timestamps there are special ones: -1 the log end offset, -2 the log start offset, -3 the record with the
largest timestamp (v7), -4 and -5 bounds of tiered storage (v8, v9).
"""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class ListOffsetsRequest(Request, api_key=ApiKey.LIST_OFFSETS, versions="0-11", flexible="6+"):
    """Look up offsets by time.

    v0: asks for up to `max_num_offsets` offsets, the newest first, at which *segments* begin before the timestamp.
    v1: asks for the one record (KIP-79).  v2: isolation level: with read_committed the end is the last stable offset.
    v4: leader epochs.  v6: flexible.  v7, v8, v9, v11: further special timestamps.  v10: a time limit, for tiered
    storage.  v3 and v5 are like the last.
    """

    class ListOffsetsTopic(Struct):
        class ListOffsetsPartition(Struct):
            partition_index:      int = t.int32()
            current_leader_epoch: int = t.int32("4+", default=-1, ignorable=True)
            timestamp:            int = t.int64()
            max_num_offsets:      int = t.int32("0", default=1, ignorable=True)

        name:       str                        = t.string()
        partitions: list[ListOffsetsPartition] = t.array(ListOffsetsPartition)

    replica_id:      int                    = t.int32()  # -1: a consumer
    isolation_level: int                    = t.int8("2+")
    topics:          list[ListOffsetsTopic] = t.array(ListOffsetsTopic)
    timeout_ms:      int                    = t.int32("10+", ignorable=True)


class ListOffsetsResponse(Response, api_key=ApiKey.LIST_OFFSETS, versions="0-11", flexible="6+"):
    """The offsets found.

    v0: a list, newest first.  v1: one offset with its timestamp, both -1 where no record is that young.  v2: throttle
    time.  v4: leader epoch.  v6: flexible.  The others are like the one before.
    """

    class ListOffsetsTopicResponse(Struct):
        class ListOffsetsPartitionResponse(Struct):
            partition_index:   int       = t.int32()
            error_code:        int       = t.int16()
            old_style_offsets: list[int] = t.array(t.int64, "0", ignorable=True)
            timestamp:         int       = t.int64("1+", default=-1)
            offset:            int       = t.int64("1+", default=-1)
            leader_epoch:      int       = t.int32("4+", default=-1)

        name:       str                                = t.string()
        partitions: list[ListOffsetsPartitionResponse] = t.array(ListOffsetsPartitionResponse)

    throttle_time_ms: int                            = t.int32("2+", ignorable=True)
    topics:           list[ListOffsetsTopicResponse] = t.array(ListOffsetsTopicResponse)
