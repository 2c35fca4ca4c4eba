"""AddOffsetsToTxn (25): offsets of a group will be committed within the transaction.  KIP-98.

To the coordinator that is one more partition: the group's in `__consumer_offsets`, which gets a marker as the others.
"""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response


class AddOffsetsToTxnRequest(Request, api_key=ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+"):
    """Add a group.

    v2: PRODUCER_FENCED is possible.  v3: flexible.  v4: TRANSACTION_ABORTABLE is possible.  v1 is like v0.
    """

    transactional_id: str = t.string()
    producer_id:      int = t.int64()
    producer_epoch:   int = t.int16()
    group_id:         str = t.string()


class AddOffsetsToTxnResponse(Response, api_key=ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+"):
    """Success or error.  v3: flexible."""

    throttle_time_ms: int = t.int32()
    error_code:       int = t.int16()
