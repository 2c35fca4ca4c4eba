"""AddOffsetsToTxn (25): include the offsets of a consumer group in a transaction (KIP-98).

The broker stores the offsets of a consumer group in one partition of the topic `__consumer_offsets`. The transaction
coordinator adds this partition to the transaction. When the transaction ends, the partition gets a COMMIT or ABORT
marker, like all other partitions of the transaction.
"""

from typing import ClassVar

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response


class AddOffsetsToTxnRequest(Request, api_key=ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+"):
    """A producer's request to make the offsets of a consumer group a part of the producer's transaction.

    - Version 1 has the same layout as version 0.
    - From version 2 on, the response can contain the error PRODUCER_FENCED.
    - Version 3 uses the flexible encoding (KIP-482).
    - From version 4 on, the response can contain the error TRANSACTION_ABORTABLE.
    """

    FIRST_VERSION_OF_FENCED: ClassVar[int] = 2

    transactional_id: str = t.string()
    producer_id:      int = t.int64()
    producer_epoch:   int = t.int16()
    group_id:         str = t.string()


class AddOffsetsToTxnResponse(Response, api_key=ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+"):
    """Success, or an error code. Version 3 uses the flexible encoding (KIP-482)."""

    throttle_time_ms: int = t.int32()
    error_code:       int = t.int16()
