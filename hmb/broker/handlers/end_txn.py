"""EndTxn: commit or abort a transaction.

Versions: 0-5, flexible from 3.
Behavior: the response is sent when the outcome is on disk and all partitions have their markers. If a marker could not
    be written, the response is the same, because the outcome is decided. A repeated EndTxn gets the same response as
    the first one. While the first one is being handled, a second EndTxn gets CONCURRENT_TRANSACTIONS.
Version notes: in versions below 2 a fenced producer gets INVALID_PRODUCER_EPOCH. Producers of transaction version 2
    send request version 5. They get a new epoch with each transaction, and may abort a transaction without records.
Left out: nothing.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.transactional import code_for_producer
from hmb.coordinator.producer_ids import ProducerIdAndEpoch
from hmb.coordinator.transactions.transactional_id import VERSION_2
from hmb.protocol.errors import KafkaError
from hmb.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

FIRST_VERSION_OF_EPOCHS = EndTxnResponse.first_version("producer_id")


def handle(request: EndTxnRequest, context: RequestContext) -> EndTxnResponse:
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    has_epochs = context.version >= FIRST_VERSION_OF_EPOCHS
    try:
        after = context.broker.transactions.end(
            request.transactional_id, producer, VERSION_2 if has_epochs else 0, committed=request.committed
        )
    except KafkaError as error:
        return EndTxnResponse(error_code=code_for_producer(error.code, context.header))
    if not has_epochs:
        return EndTxnResponse()
    return EndTxnResponse(producer_id=after.producer_id, producer_epoch=after.epoch)
