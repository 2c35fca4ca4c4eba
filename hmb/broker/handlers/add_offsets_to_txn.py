"""AddOffsetsToTxn: announce that a transaction will commit offsets of a consumer group.

Versions: 0-4; versions 3 and later use the flexible encoding (KIP-482).
Permissions: WRITE on the transactional id; READ on the group.
Behavior: a partition of `__consumer_offsets` stores the group's offsets. The broker adds this partition to the
    transaction. When the transaction ends, the broker therefore writes a marker to this partition, as to all other
    partitions of the transaction.
Version notes: if the producer is fenced, versions 0 and 1 return INVALID_PRODUCER_EPOCH instead of PRODUCER_FENCED.
    Producers that use transaction version 2 (KIP-890) do not send this request, because their TxnOffsetCommit also adds
    the partition.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.transactional import code_for_producer
from hmb.protocol.errors import KafkaError
from hmb.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from hmb.records.producer_numbers import ProducerIdAndEpoch


def handle(request: AddOffsetsToTxnRequest, context: RequestContext) -> AddOffsetsToTxnResponse:
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    try:
        context.broker.groups.make_topic()  # FindCoordinator also creates the topic, but the producer sends it later.
        partition = context.broker.groups.offsets.partition_for(request.group_id)
        context.broker.transactions.add_partitions(request.transactional_id, producer, {partition}, version=0)
    except KafkaError as error:
        code = code_for_producer(error.code, context.header)
        return AddOffsetsToTxnResponse(error_code=code)
    return AddOffsetsToTxnResponse()
