"""AddOffsetsToTxn: offsets of a group will be committed in the transaction.

Versions: 0-4, flexible from 3.
Behaviour: the partition of `__consumer_offsets` to which the group belongs takes part, so that it gets its marker.
Version notes: below 2 a producer that is shut out is told INVALID_PRODUCER_EPOCH.  Producers of transaction version 2
    do not send it: their TxnOffsetCommit says as much.
Left out: nothing.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.transactional import told
from hmb.coordinator.producer_ids import ProducerIdAndEpoch
from hmb.protocol.errors import KafkaError
from hmb.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

FIRST_VERSION_OF_FENCED = 2


def handle(request: AddOffsetsToTxnRequest, context: RequestContext) -> AddOffsetsToTxnResponse:
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    try:
        context.broker.groups.make_topic()  # a producer looks for the group's coordinator after this request only
        partition = context.broker.groups.partition_for(request.group_id)
        context.broker.transactions.add_partitions(request.transactional_id, producer, {partition}, version=0)
    except KafkaError as error:
        code = told(error, knows_fenced=context.version >= FIRST_VERSION_OF_FENCED)
        return AddOffsetsToTxnResponse(error_code=code)
    return AddOffsetsToTxnResponse()
