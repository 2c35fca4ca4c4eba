"""InitProducerId (22): an identity for an idempotent or transactional producer.  KIP-98.

The broker gives out a producer id that was never used before.  With a transactional id it gives back the one of last
time and raises its epoch, which shuts out ("fences") every older producer of that name.
"""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response


class InitProducerIdRequest(Request, api_key=ApiKey.INIT_PRODUCER_ID, versions="0-5", flexible="2+"):
    """Ask for a producer id and epoch.

    v2: flexible.  v3: a producer that goes on after an error says what it has (KIP-360).  v4: PRODUCER_FENCED is
    possible.  v5: TRANSACTION_ABORTABLE is possible.  v1 is like v0.  (v6 is not yet stable in Kafka 4.3.)
    """

    transactional_id:       str | None = t.string(nullable="0+")
    transaction_timeout_ms: int        = t.int32()
    producer_id:            int        = t.int64("3+", default=-1)
    producer_epoch:         int        = t.int16("3+", default=-1)


class InitProducerIdResponse(Response, api_key=ApiKey.INIT_PRODUCER_ID, versions="0-5", flexible="2+"):
    """The producer id and its epoch.  v2: flexible."""

    throttle_time_ms: int = t.int32(ignorable=True)
    error_code:       int = t.int16()
    producer_id:      int = t.int64(default=-1)
    producer_epoch:   int = t.int16()
