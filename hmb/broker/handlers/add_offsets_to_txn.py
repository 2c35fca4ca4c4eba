"""AddOffsetsToTxn: announce that a transaction will commit offsets of a consumer group.

Versions: 0-4; versions 3 and later use the flexible encoding (KIP-482).
Permissions: WRITE on the transactional id; READ on the group.
Behavior: one partition of `__consumer_offsets` stores the committed offsets of the group. The broker adds this
    partition to the transaction. At the end of the transaction, the broker writes a COMMIT or ABORT marker to
    each partition of the transaction, including this one.
Version notes: a producer is fenced if a newer producer uses the same transactional id. A fenced producer gets
    INVALID_PRODUCER_EPOCH in versions 0 and 1, and PRODUCER_FENCED in later versions. Producers that use
    transaction version 2 (KIP-890) do not send AddOffsetsToTxn, because their TxnOffsetCommit requests also add
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
        # The topic `__consumer_offsets` must exist now. FindCoordinator for a group also creates this topic, but a
        # producer sends that request only after AddOffsetsToTxn.
        context.broker.groups.make_topic()
        partition = context.broker.groups.offsets.partition_for(request.group_id)
        context.broker.transactions.add_partitions(request.transactional_id, producer, {partition}, version=0)
    except KafkaError as error:
        code = code_for_producer(error.code, context.header)
        return AddOffsetsToTxnResponse(error_code=code)
    return AddOffsetsToTxnResponse()
