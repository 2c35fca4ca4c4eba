"""AddOffsetsToTxn: announce that a transaction will commit offsets of a group.

Versions: 0-4, flexible from 3.
Behavior: the partition of `__consumer_offsets` that stores the group's offsets becomes part of the transaction, so
    that it gets the transaction's marker.
Version notes: in versions below 2 a fenced producer gets INVALID_PRODUCER_EPOCH. Producers of transaction version 2 do
    not send this request, because their TxnOffsetCommit has the same effect.
Left out: nothing.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.transactional import code_for_producer
from hmb.coordinator.producer_ids import ProducerIdAndEpoch
from hmb.protocol.errors import KafkaError
from hmb.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


def handle(request: AddOffsetsToTxnRequest, context: RequestContext) -> AddOffsetsToTxnResponse:
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    try:
        context.broker.groups.make_topic()  # A producer looks for the coordinator only after this request.
        partition = context.broker.groups.partition_for(request.group_id)
        context.broker.transactions.add_partitions(request.transactional_id, producer, {partition}, version=0)
    except KafkaError as error:
        code = code_for_producer(error.code, context.header)
        return AddOffsetsToTxnResponse(error_code=code)
    return AddOffsetsToTxnResponse()
