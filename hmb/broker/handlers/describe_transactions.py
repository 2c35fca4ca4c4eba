"""DescribeTransactions: what the coordinator knows of transactional ids.

Versions: 0, flexible.
Behaviour: state, producer, timeout, and the partitions of the transaction that is under way; each id has its own error.
Version notes: none.
Left out: while a transaction ends, Kafka tells which partitions have no marker yet; here all of them stay until it is
    over.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import answering
from hmb.broker.handlers.shared_answers import check_repetitions
from hmb.coordinator.transactions.records import by_topic
from hmb.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse

Answer = DescribeTransactionsResponse.TransactionState


def handle(request: DescribeTransactionsRequest, context: RequestContext) -> DescribeTransactionsResponse:
    check_repetitions(request.transactional_ids)
    return DescribeTransactionsResponse(transaction_states=[_describe(id, context) for id in request.transactional_ids])


def _describe(transactional_id: str, context: RequestContext) -> Answer:
    answer = Answer(transactional_id=transactional_id)
    with answering(answer):
        found = context.broker.transactions.describe(transactional_id)
        answer.transaction_state = found.state.label
        answer.transaction_timeout_ms, answer.transaction_start_time_ms = found.timeout, found.started
        answer.producer_id, answer.producer_epoch = found.producer
        answer.topics = [Answer.TopicData(topic=topic, partitions=ids) for topic, ids in by_topic(found.partitions)]
    return answer
