"""AddOffsetsToTxn (25): include the offsets of a consumer group in a transaction (KIP-98).

The transaction coordinator adds the group's partition of `__consumer_offsets` to the transaction. So this partition,
too, gets a marker at the end of the transaction.
"""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response


class AddOffsetsToTxnRequest(Request, api_key=ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+"):
    """A request to include a group's offsets in the producer's transaction.

    Version 2 allows the error PRODUCER_FENCED. Version 3 is flexible. Version 4 allows the error TRANSACTION_ABORTABLE.
    Version 1 equals version 0.
    """

    transactional_id: str = t.string()
    producer_id:      int = t.int64()
    producer_epoch:   int = t.int16()
    group_id:         str = t.string()


class AddOffsetsToTxnResponse(Response, api_key=ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+"):
    """Success, or an error code. Version 3 is flexible."""

    throttle_time_ms: int = t.int32()
    error_code:       int = t.int16()
