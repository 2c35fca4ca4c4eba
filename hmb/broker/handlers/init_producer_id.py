"""InitProducerId: get a producer id and an epoch, for an idempotent or a transactional producer.

Versions: 0-5; versions 2 and later use the flexible encoding (KIP-482).
Permissions: WRITE on the transactional id; without an id, IDEMPOTENT_WRITE, or WRITE on any topic.
Behavior: the broker answers by these rules:
    - *Without a transactional id.* Each request gets a new producer id, which no other producer has, and the
      epoch 0.
    - *With a transactional id.* The transactional id has a producer id. The response contains this id and
      a greater epoch than before. The broker then refuses (*fences*) requests of earlier producers, because
      they contain an older epoch. When the epochs are used up, the transactional id gets a new producer id,
      and the epoch 0. If a producer has received no response and repeats its request with its own id and epoch,
      it gets the same new epoch again.
    - *Open transaction.* If an earlier producer has left a transaction open, the broker aborts this
      transaction. The client gets CONCURRENT_TRANSACTIONS, and tries again until the abort is complete.
    - *Timeout.* If the transaction timeout is below 1 ms or greater than `transaction.max.timeout.ms`, the
      error is INVALID_TRANSACTION_TIMEOUT.
Version notes: if the producer is fenced, versions below 4 return INVALID_PRODUCER_EPOCH instead of
    PRODUCER_FENCED.
Left out: two-phase commit (KIP-939), with which a producer takes part in a database's transaction. It needs
    version 6 of the request, which is not stable in Kafka 4.3.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.transactional import code_for_producer
from hmb.protocol.enums import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from hmb.records.producer_numbers import ProducerIdAndEpoch


def handle(request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    response = InitProducerIdResponse(producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)
    try:
        if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "send both a producer id and an epoch, or neither")
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
