"""InitProducerId (22): get an identity for an idempotent or transactional producer (KIP-98).

The broker usually returns a new producer id. But if the broker already knows the transactional id in the request, the
producer id stays the same, and its epoch becomes greater. The greater epoch *fences* every older producer with this
transactional id: the broker now refuses the older producer's requests.
"""

from typing import ClassVar

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response


class InitProducerIdRequest(Request, api_key=ApiKey.INIT_PRODUCER_ID, versions="0-5", flexible="2+"):
    """A request for a producer id and an epoch.

    - Version 1 has the same layout as version 0.
    - Version 2 uses the flexible encoding (KIP-482).
    - Version 3 adds the current producer id and epoch. A producer sends them when it continues after an error
      (KIP-360).
    - From version 4 on, the response can contain the error PRODUCER_FENCED.
    - From version 5 on, the response can contain the error TRANSACTION_ABORTABLE.

    Version 6 is not yet stable in Kafka 4.3, so HMB does not support it.
    """

    FIRST_VERSION_OF_FENCED: ClassVar[int] = 4

    transactional_id:       str | None = t.string(nullable="0+")
    transaction_timeout_ms: int        = t.int32()
    producer_id:            int        = t.int64("3+", default=-1)
    producer_epoch:         int        = t.int16("3+", default=-1)


class InitProducerIdResponse(Response, api_key=ApiKey.INIT_PRODUCER_ID, versions="0-5", flexible="2+"):
    """The producer id and its epoch. Version 2 uses the flexible encoding (KIP-482)."""

    throttle_time_ms: int = t.int32(ignorable=True)
    error_code:       int = t.int16()
    producer_id:      int = t.int64(default=-1)
    producer_epoch:   int = t.int16()
