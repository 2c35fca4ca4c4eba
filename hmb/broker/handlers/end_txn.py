"""EndTxn: commit or abort a transaction.

Versions: 0-5; versions 3 and later use the flexible encoding (KIP-482).
Permissions: WRITE on the transactional id.
Behavior: first the broker writes the outcome (commit or abort) to disk. From then on, the outcome can no longer
    change. Then the broker writes a marker with the outcome to each partition of the transaction, and sends the
    response. Because the outcome is final, the response has no error, even if a marker cannot be written. If a
    client repeats an EndTxn that has succeeded, the client gets the same response again. If the client repeats an
    EndTxn that is still in progress, the client gets CONCURRENT_TRANSACTIONS.
Version notes: if the epoch of the producer is too old, the error is PRODUCER_FENCED. In versions 0 and 1, the error
    is INVALID_PRODUCER_EPOCH instead. For example, an epoch becomes too old when a newer producer starts with the
    same transactional id, or when the transaction times out. Producers that use version 2 of transactions (KIP-890)
    send version 5 of this request. The response of version 5 contains a new producer epoch for the next
    transaction. From version 5 on, a producer can also abort a transaction that has no records.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.transactional import code_for_producer
from hmb.coordinator.transactions.transactional_id import VERSION_2
from hmb.protocol.errors import KafkaError
from hmb.protocol.messages.end_txn import FIRST_END_TXN_VERSION_OF_EPOCHS, EndTxnRequest, EndTxnResponse
from hmb.records.producer_numbers import ProducerIdAndEpoch


def handle(request: EndTxnRequest, context: RequestContext) -> EndTxnResponse:
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    has_epochs = context.version >= FIRST_END_TXN_VERSION_OF_EPOCHS
    try:
        after = context.broker.transactions.end(
            request.transactional_id, producer, VERSION_2 if has_epochs else 0, committed=request.committed
        )
    except KafkaError as error:
        return EndTxnResponse(error_code=code_for_producer(error.code, context.header))
    if not has_epochs:
        return EndTxnResponse()
    return EndTxnResponse(producer_id=after.producer_id, producer_epoch=after.epoch)
