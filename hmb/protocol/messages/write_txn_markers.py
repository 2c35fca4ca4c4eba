"""WriteTxnMarkers (27): write COMMIT or ABORT markers, which end a transaction in its partitions (KIP-98).

The transaction coordinator sends WriteTxnMarkers to the leaders of the partitions. An administrator can also send
WriteTxnMarkers, to end a transaction that no coordinator knows any more (KIP-664).
"""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class WriteTxnMarkersRequest(Request, api_key=ApiKey.WRITE_TXN_MARKERS, versions="1-2", flexible="1+"):
    """The markers to write.

    Version 2 adds the transaction version of the producer (KIP-1228). Version 0 no longer exists. Only old brokers used
    version 0.
    """

    class WritableTxnMarker(Struct):
        class WritableTxnMarkerTopic(Struct):
            name:              str       = t.string()
            partition_indexes: list[int] = t.array(t.int32)

        producer_id:         int                          = t.int64()
        producer_epoch:      int                          = t.int16()
        transaction_result:  bool                         = t.boolean()  # false: abort, true: commit
        topics:              list[WritableTxnMarkerTopic] = t.array(WritableTxnMarkerTopic)
        coordinator_epoch:   int                          = t.int32()
        transaction_version: int                          = t.int8("2+", ignorable=True)

    markers: list[WritableTxnMarker] = t.array(WritableTxnMarker)


class WriteTxnMarkersResponse(Response, api_key=ApiKey.WRITE_TXN_MARKERS, versions="1-2", flexible="1+"):
    """An error code for each partition of each producer."""

    class WritableTxnMarkerResult(Struct):
        class WritableTxnMarkerTopicResult(Struct):
            class WritableTxnMarkerPartitionResult(Struct):
                partition_index: int = t.int32()
                error_code:      int = t.int16()

            name:       str                                    = t.string()
            partitions: list[WritableTxnMarkerPartitionResult] = t.array(WritableTxnMarkerPartitionResult)

        producer_id: int                                = t.int64()
        topics:      list[WritableTxnMarkerTopicResult] = t.array(WritableTxnMarkerTopicResult)

    markers: list[WritableTxnMarkerResult] = t.array(WritableTxnMarkerResult)
