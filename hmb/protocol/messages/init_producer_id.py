"""InitProducerId (22): get an identity for an idempotent or transactional producer (KIP-98).

The broker returns a producer id that was never used before. For a known transactional id the broker returns the same
producer id as last time, with a greater epoch. The greater epoch *fences* every older producer with this transactional
id: the broker refuses the older producer's requests from then on.
"""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response


class InitProducerIdRequest(Request, api_key=ApiKey.INIT_PRODUCER_ID, versions="0-5", flexible="2+"):
    """A request for a producer id and an epoch.

    Version 2 is flexible. Version 3 carries the current id and epoch of a producer that continues after an error
    (KIP-360). Version 4 allows the error PRODUCER_FENCED, version 5 TRANSACTION_ABORTABLE. Version 1 equals version 0.
    Version 6 is not yet stable in Kafka 4.3, so HMB does not support it.
    """

    transactional_id:       str | None = t.string(nullable="0+")
    transaction_timeout_ms: int        = t.int32()
    producer_id:            int        = t.int64("3+", default=-1)
    producer_epoch:         int        = t.int16("3+", default=-1)


class InitProducerIdResponse(Response, api_key=ApiKey.INIT_PRODUCER_ID, versions="0-5", flexible="2+"):
    """The producer id and its epoch. Version 2 is flexible."""

    throttle_time_ms: int = t.int32(ignorable=True)
    error_code:       int = t.int16()
    producer_id:      int = t.int64(default=-1)
    producer_epoch:   int = t.int16()
