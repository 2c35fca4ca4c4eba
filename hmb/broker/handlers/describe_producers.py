"""DescribeProducers: list the producers that have written to partitions, and their open transactions.

Versions: 0; in the flexible encoding (KIP-482).
Permissions: READ on each topic.
Behavior: each partition has its own error code. For each producer, the response contains the last sequence
    number, and the first offset of the open transaction (-1 if no transaction is open). A log forgets a
    producer 24 hours after the producer's last append, unless the producer has an open transaction. The log
    measures the 24 hours with the broker's clock. It does not use `last_timestamp`, the timestamp in the
    producer's last batch or transaction marker.
Version notes: none.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.shared_responses import check_repetitions
from hmb.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from hmb.protocol.topics import TopicPartition

TopicResponse = DescribeProducersResponse.TopicResponse
PartitionResponse = TopicResponse.PartitionResponse
ProducerState = PartitionResponse.ProducerState


def handle(request: DescribeProducersRequest, context: RequestContext) -> DescribeProducersResponse:
    check_repetitions((topic.name, number) for topic in request.topics for number in topic.partition_indexes)
    response = DescribeProducersResponse()
    for topic in request.topics:
        partition_responses = [PartitionResponse(partition_index=number) for number in topic.partition_indexes]
        response.topics.append(TopicResponse(name=topic.name, partitions=partition_responses))
        for partition_response in partition_responses:
            with error_code_in(partition_response):
                log = context.broker.topics.log_of(TopicPartition(topic.name, partition_response.partition_index))
                partition_response.active_producers = [
                    ProducerState(
                        producer_id=producer_id,
                        producer_epoch=producer.epoch,
                        last_sequence=producer.last_sequence,
                        last_timestamp=producer.timestamp,
                        coordinator_epoch=producer.coordinator_epoch,
                        current_txn_start_offset=first_offset,
                    )
                    for producer_id, producer, first_offset in log.producers.active()
                ]
    return response
