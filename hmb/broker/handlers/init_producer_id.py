"""InitProducerId: get a producer id, for an idempotent or a transactional producer.

Versions: 0-5, flexible from 2.
Behavior: a producer without a transactional id gets an id that was never assigned before, with epoch 0. After an error
    that the producer cannot resolve, it sends its present id and epoch. It then also gets a new id, and its sequence
    numbers begin again. A transactional id always gets the same producer id, with a greater epoch, which fences all
    earlier producers. If an earlier producer has left a transaction open, the broker aborts it. The client then gets
    CONCURRENT_TRANSACTIONS and retries. A timeout above `transaction.max.timeout.ms` gets INVALID_TRANSACTION_TIMEOUT.
Version notes: version 3 adds the producer's own id and epoch (KIP-360). In versions below 4 a fenced producer gets
    INVALID_PRODUCER_EPOCH.
Left out: two-phase commit (KIP-939), which is version 6 and not yet stable in Kafka 4.3.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.transactional import code_for_producer
from hmb.coordinator.producer_ids import ProducerIdAndEpoch
from hmb.protocol.enums import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def handle(request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    response = InitProducerIdResponse(producer_id=-1, producer_epoch=-1)
    try:
        if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "a request contains both producer id and epoch, or neither")
        response.producer_id, response.producer_epoch = _allocate(request, context)
    except KafkaError as error:
        response.error_code = code_for_producer(error.code, context.header)
    return response


def _allocate(request: InitProducerIdRequest, context: RequestContext) -> ProducerIdAndEpoch:
    if request.transactional_id is None:
        return ProducerIdAndEpoch(context.broker.producer_ids.allocate(), 0)
    known = None
    if request.producer_id != NO_PRODUCER_ID:
        known = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    transactions = context.broker.transactions
    return transactions.init_producer(request.transactional_id, request.transaction_timeout_ms, known)
