"""InitProducerId: an id for an idempotent producer.

Versions: 0-5, flexible from 2.
Behaviour: gives out an id that was never given before, with epoch 0.  A producer that asks again with its id and
    epoch (after an error that it cannot resolve) gets a new id as well, which frees it from its old sequence numbers.
Version notes: 3 brought the producer's own id and epoch.
Left out: transactional ids, refused with INVALID_REQUEST until there are transactions.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import answering
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NO_PRODUCER, NO_EPOCH = -1, -1


def handle(request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    response = InitProducerIdResponse(producer_id=-1, producer_epoch=-1)
    with answering(response):
        if request.transactional_id is not None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "this broker has no transactions yet")
        if (request.producer_id == NO_PRODUCER) != (request.producer_epoch == NO_EPOCH):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "producer id and epoch go together")
        response.producer_id, response.producer_epoch = context.broker.producer_ids.allocate(), 0
    return response
