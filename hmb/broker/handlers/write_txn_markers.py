"""WriteTxnMarkers: end transactions in the given partitions, by writing markers to these partitions.

Versions: 1-2; all use the flexible encoding (KIP-482).
Permissions: CLUSTER_ACTION or ALTER on the cluster.
Behavior: each partition has its own error code.
    - *Disk.* If `log.flush.acks.all` is true (the default), the broker syncs all markers to disk before it
      responds.
    - *No coordinator.* The tool `kafka-transactions.sh abort` sends this request to end a transaction that the
      coordinator no longer knows. The broker therefore writes the markers without asking the coordinator. If
      the broker has no authorizer, any client that knows a producer's id and epoch can end the producer's
      transaction.
    - *Other brokers.* In Kafka, coordinators send this request to other brokers. HMB's coordinator writes its
      markers directly.
Version notes: version 2 adds the field `transaction_version` (KIP-1228). In version 1, the value is always 0.
    If the value is 2 or more, and a marker's epoch is not greater than the epoch of the open transaction, the
    error is INVALID_PRODUCER_EPOCH.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from collections.abc import Callable

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from hmb.protocol.topics import TopicPartition
from hmb.records import ControlType, EndTransactionMarker
from hmb.records.producer_numbers import ProducerIdAndEpoch

Wanted = WriteTxnMarkersRequest.WritableTxnMarker
Result = WriteTxnMarkersResponse.WritableTxnMarkerResult
TopicResult = Result.WritableTxnMarkerTopicResult
PartitionResult = TopicResult.WritableTxnMarkerPartitionResult
Written = list[tuple[PartitionResult, Callable[[], None]]]  # a response, and a function that syncs the marker to disk


def handle(request: WriteTxnMarkersRequest, context: RequestContext) -> WriteTxnMarkersResponse:
    written: Written = []
    response = WriteTxnMarkersResponse(markers=[_write(wanted, written, context) for wanted in request.markers])
    # The sync comes after all appends, because one sync of a log then covers several markers.
    for partition_result, finish in written:
        with error_code_in(partition_result):
            finish()
    return response


def _write(wanted: Wanted, written: Written, context: RequestContext) -> Result:
    kind = ControlType.COMMIT if wanted.transaction_result else ControlType.ABORT
    marker = EndTransactionMarker(kind, wanted.coordinator_epoch)
    producer = ProducerIdAndEpoch(wanted.producer_id, wanted.producer_epoch)
    result = Result(producer_id=wanted.producer_id)
    for topic in wanted.topics:
        partition_results = [PartitionResult(partition_index=number) for number in topic.partition_indexes]
        result.topics.append(TopicResult(name=topic.name, partitions=partition_results))
        for partition_result in partition_results:
            with error_code_in(partition_result):
                partition = TopicPartition(topic.name, partition_result.partition_index)
                begin = context.broker.transactions.begin_marker
                written.append((partition_result, begin(marker, producer, partition, wanted.transaction_version)))
    return result
