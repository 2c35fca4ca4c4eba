"""EndTxn: commit a transaction, or abort it.

Versions: 0-5, flexible from 3.
Behaviour: answered when the outcome is on disk, and the markers are in all partitions; if these could not be written,
    the answer is the same, because the outcome stands.  A repeated EndTxn is answered like the first; one that comes
    while the first is under way gets CONCURRENT_TRANSACTIONS.
Version notes: below 2 a producer that is shut out is told INVALID_PRODUCER_EPOCH.  5 is of producers of transaction
    version 2, which get a new epoch with each transaction, and may abort one that nothing was written in.
Left out: nothing.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.transactional import told
from hmb.coordinator.producer_ids import ProducerIdAndEpoch
from hmb.coordinator.transactions.transactional_id import VERSION_2
from hmb.protocol.errors import KafkaError
from hmb.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

FIRST_VERSION_OF_FENCED = 2
FIRST_VERSION_OF_EPOCHS = EndTxnResponse.first_version("producer_id")


def handle(request: EndTxnRequest, context: RequestContext) -> EndTxnResponse:
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    has_epochs = context.version >= FIRST_VERSION_OF_EPOCHS
    try:
        after = context.broker.transactions.end(
            request.transactional_id, producer, VERSION_2 if has_epochs else 0, committed=request.committed
        )
    except KafkaError as error:
        return EndTxnResponse(error_code=told(error, knows_fenced=context.version >= FIRST_VERSION_OF_FENCED))
    if not has_epochs:
        return EndTxnResponse()
    return EndTxnResponse(producer_id=after.producer_id, producer_epoch=after.epoch)
