"""EndTxn (26): commit the transaction, or abort it.  KIP-98."""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response


class EndTxnRequest(Request, api_key=ApiKey.END_TXN, versions="0-5", flexible="3+"):
    """End the transaction.

    v2: PRODUCER_FENCED is possible.  v3: flexible.  v4: TRANSACTION_ABORTABLE is possible.  v5: of producers that get
    a new epoch with every transaction (KIP-890, transaction version 2).  v1 is like v0.
    """

    transactional_id: str  = t.string()
    producer_id:      int  = t.int64()
    producer_epoch:   int  = t.int16()
    committed:        bool = t.boolean()


class EndTxnResponse(Response, api_key=ApiKey.END_TXN, versions="0-5", flexible="3+"):
    """The outcome is decided; it may take a moment until readers see it.

    v3: flexible.  v5: the producer id and epoch for the next transaction.
    """

    throttle_time_ms: int = t.int32()
    error_code:       int = t.int16()
    producer_id:      int = t.int64("5+", default=-1, ignorable=True)
    producer_epoch:   int = t.int16("5+", default=-1, ignorable=True)
