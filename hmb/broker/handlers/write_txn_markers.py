"""WriteTxnMarkers: end transactions in the given partitions.

Versions: 1-2, flexible.
Behavior: each partition has its own error code, and is answered when its marker is on disk (`log.flush.acks.all`). The
    handler does not ask the coordinator, because this API is for transactions that the coordinator no longer knows
    (`kafka-transactions.sh abort`). The coordinator of one broker writes its own markers directly.
Version notes: version 2 adds the transaction version whose rules apply (KIP-1228). With transaction version 2 the
    marker of an open transaction has a greater epoch than its records.
Left out: the check of who sends this request, because there are no ACLs yet.
"""

from __future__ import annotations

from collections.abc import Callable

from hmb.broker.context import RequestContext
from hmb.broker.errors import answering
from hmb.coordinator.producer_ids import ProducerIdAndEpoch
from hmb.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from hmb.protocol.topics import TopicPartition
from hmb.records import ControlType, EndTransactionMarker

Wanted = WriteTxnMarkersRequest.WritableTxnMarker
Result = WriteTxnMarkersResponse.WritableTxnMarkerResult
TopicResult = Result.WritableTxnMarkerTopicResult
PartitionResult = TopicResult.WritableTxnMarkerPartitionResult
Written = list[tuple[PartitionResult, Callable[[], None]]]  # a response, and a function that waits for the disk


def handle(request: WriteTxnMarkersRequest, context: RequestContext) -> WriteTxnMarkersResponse:
    written: Written = []
    response = WriteTxnMarkersResponse(markers=[_write(wanted, written, context) for wanted in request.markers])
    for answer, finish in written:  # The sync of one marker includes the other markers.
        with answering(answer):
            finish()
    return response


def _write(wanted: Wanted, written: Written, context: RequestContext) -> Result:
    kind = ControlType.COMMIT if wanted.transaction_result else ControlType.ABORT
    marker = EndTransactionMarker(kind, wanted.coordinator_epoch)
    producer = ProducerIdAndEpoch(wanted.producer_id, wanted.producer_epoch)
    result = Result(producer_id=wanted.producer_id)
    for topic in wanted.topics:
        answers = [PartitionResult(partition_index=number) for number in topic.partition_indexes]
        result.topics.append(TopicResult(name=topic.name, partitions=answers))
        for answer in answers:
            with answering(answer):
                partition = TopicPartition(topic.name, answer.partition_index)
                begin = context.broker.transactions.begin_marker
                written.append((answer, begin(marker, producer, partition, wanted.transaction_version)))
    return result
