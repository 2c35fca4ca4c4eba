"""EndTxn (26): commit a transaction, or abort it (KIP-98)."""

from typing import ClassVar

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response


class EndTxnRequest(Request, api_key=ApiKey.END_TXN, versions="0-5", flexible="3+"):
    """A request to commit or abort the producer's transaction.

    - Version 1 has the same layout as version 0.
    - From version 2 on, the response can contain the error PRODUCER_FENCED.
    - Version 3 uses the flexible encoding (KIP-482).
    - From version 4 on, the response can contain the error TRANSACTION_ABORTABLE.
    - A producer with the newer transaction protocol (KIP-890) sends version 5, and gets a new epoch for each
      transaction.
    """

    FIRST_VERSION_OF_FENCED: ClassVar[int] = 2

    transactional_id: str  = t.string()
    producer_id:      int  = t.int64()
    producer_epoch:   int  = t.int16()
    committed:        bool = t.boolean()


class EndTxnResponse(Response, api_key=ApiKey.END_TXN, versions="0-5", flexible="3+"):
    """Success, or an error code.

    Success means that the coordinator has stored the decision to commit or abort, and that the decision is final.
    The partitions may get their COMMIT or ABORT markers later. A consumer sees the outcome when it reads a marker.

    Version 3 uses the flexible encoding (KIP-482). Version 5 adds the producer id and epoch for the next transaction.
    """

    throttle_time_ms: int = t.int32()
    error_code:       int = t.int16()
    producer_id:      int = t.int64("5+", default=-1, ignorable=True)
    producer_epoch:   int = t.int16("5+", default=-1, ignorable=True)


FIRST_END_TXN_VERSION_OF_EPOCHS = EndTxnResponse.first_version("producer_id")
