"""EndTxn (26): commit a transaction, or abort it (KIP-98)."""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response


class EndTxnRequest(Request, api_key=ApiKey.END_TXN, versions="0-5", flexible="3+"):
    """A request to commit or abort the producer's transaction.

    Version 2 allows the error PRODUCER_FENCED. Version 3 is flexible. Version 4 allows the error TRANSACTION_ABORTABLE.
    Producers of transaction version 2 send version 5 and get a new epoch with every transaction (KIP-890). Version 1
    equals version 0.
    """

    transactional_id: str  = t.string()
    producer_id:      int  = t.int64()
    producer_epoch:   int  = t.int16()
    committed:        bool = t.boolean()


class EndTxnResponse(Response, api_key=ApiKey.END_TXN, versions="0-5", flexible="3+"):
    """Success, or an error code.

    After a success the outcome is decided. The markers, and so the effect for consumers, follow a moment later.

    Version 3 is flexible. Version 5 adds the producer id and epoch for the next transaction.
    """

    throttle_time_ms: int = t.int32()
    error_code:       int = t.int16()
    producer_id:      int = t.int64("5+", default=-1, ignorable=True)
    producer_epoch:   int = t.int16("5+", default=-1, ignorable=True)
