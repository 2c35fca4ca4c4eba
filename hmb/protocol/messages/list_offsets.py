"""ListOffsets (2): return the offset of the first record at or after a timestamp.

Negative timestamps have special meanings:
- -1 asks for the log end offset.
- -2 asks for the log start offset.
- -3 asks for the record with the greatest timestamp. It needs version 7 or later.
- -4, -5 and -6 ask for offsets in tiered storage.
"""

from collections.abc import Mapping

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.enums import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
)
from hmb.protocol.schema import Request, Response, Struct


class ListOffsetsRequest(Request, api_key=ApiKey.LIST_OFFSETS, versions="0-11", flexible="6+"):
    """A timestamp for each partition. The broker returns the offset of the first record at or after it.

    - Version 0 asks for the base offsets of all *segments* whose files were last changed at or before the
      timestamp. The broker returns only the `max_num_offsets` greatest of these offsets.
    - From version 1 on, the broker returns only one offset (KIP-79).
    - Version 2 adds the isolation level. With read_committed, the timestamp -1 asks for the last stable offset.
    - Version 4 adds leader epochs.
    - Version 6 uses the flexible encoding (KIP-482).
    - Versions 7, 8, 9 and 11 each add a negative timestamp with a special meaning.
    - Version 10 adds a time limit for tiered storage.

    Versions 3 and 5 do not change the layout.
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
    """For each partition, the offset that the broker has found for the requested timestamp.

    - Version 0 contains a list of offsets, the greatest first.
    - Version 1 contains one offset, and the timestamp of the record at this offset. If no record has the
      requested timestamp or a later one, the offset and the timestamp are -1. If the request asks for the start
      or the end of the log, the response contains this offset, and the timestamp -1.
    - Version 2 adds the throttle time.
    - Version 4 adds the leader epoch.
    - Version 6 uses the flexible encoding (KIP-482).

    Versions 3, 5 and 7 to 11 do not change the layout.
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


FIRST_VERSION_OF_TIMESTAMP: Mapping[int, int] = {  # for each special timestamp, the first version that may contain it
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}


FIRST_LIST_OFFSETS_VERSION_OF_EPOCHS = ListOffsetsResponse.first_version("topics.partitions.leader_epoch")
