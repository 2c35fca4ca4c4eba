"""DescribeTransactions: return the state of the current or last transaction of each given transactional id.

Versions: 0; in the flexible encoding (KIP-482).
Permissions: DESCRIBE on each transactional id.
Behavior: for each transactional id, the response contains the state, the producer id and epoch, the timeout,
    and the start time and the partitions of the current transaction. Each transactional id has its own error
    code.
Version notes: none.
Left out: one detail. At the end of a transaction, the broker writes a marker to each partition of the
    transaction. During this time, Kafka returns only the partitions without a marker. HMB returns all
    partitions until the last marker is written, so an administrator does not see how many markers are missing.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.shared_responses import check_repetitions
from hmb.coordinator.transactions.records import by_topic
from hmb.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse

TransactionResponse = DescribeTransactionsResponse.TransactionState


def handle(request: DescribeTransactionsRequest, context: RequestContext) -> DescribeTransactionsResponse:
    check_repetitions(request.transactional_ids)
    return DescribeTransactionsResponse(transaction_states=[_describe(id, context) for id in request.transactional_ids])


def _describe(transactional_id: str, context: RequestContext) -> TransactionResponse:
    response = TransactionResponse(transactional_id=transactional_id)
    with error_code_in(response):
        found = context.broker.transactions.describe(transactional_id)
        response.transaction_state = found.state.label
        response.transaction_timeout_ms, response.transaction_start_time_ms = found.timeout, found.started
        response.producer_id, response.producer_epoch = found.producer
        response.topics = [
            TransactionResponse.TopicData(topic=topic, partitions=ids) for topic, ids in by_topic(found.partitions)
        ]
    return response
