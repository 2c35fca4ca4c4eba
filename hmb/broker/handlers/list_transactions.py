"""ListTransactions: the transactional ids that the coordinator knows.

Versions: 0-2, flexible.
Behaviour: those that fit all filters; of a state that there is not, the answer tells so.
Version notes: 1 adds a least duration, counted from the start of the last transaction; 2 a regular expression that an
    id must match as a whole (INVALID_REGULAR_EXPRESSION).
Left out: in a regular expression `.` and the like stand for the characters that a topic's name may have, no others.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import answering
from hmb.coordinator.modern.topic_regex import TopicRegex
from hmb.coordinator.transactions.states import TransactionState
from hmb.coordinator.transactions.transactional_id import Transaction
from hmb.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from hmb.storage.log import now_ms

Answer = ListTransactionsResponse.TransactionState
STATES = {state.label for state in TransactionState}


def handle(request: ListTransactionsRequest, context: RequestContext) -> ListTransactionsResponse:
    unknown = [name for name in request.state_filters if name not in STATES]
    response = ListTransactionsResponse(unknown_state_filters=list(dict.fromkeys(unknown)))
    with answering(response):
        pattern = request.transactional_id_pattern
        regex, now = TopicRegex(pattern) if pattern else None, now_ms()
        response.transaction_states = [
            Answer(
                transactional_id=each.transactional_id,
                producer_id=each.producer_id,
                transaction_state=each.state.label,
            )
            for each in context.broker.transactions.list()
            if _fits(each, request, now) and (regex is None or regex.matches(each.transactional_id))
        ]
    return response


def _fits(each: Transaction, request: ListTransactionsRequest, now: int) -> bool:
    lasts = request.duration_filter < 0 or now - each.started > request.duration_filter
    is_one_of_them = not request.producer_id_filters or each.producer_id in request.producer_id_filters
    return lasts and is_one_of_them and (not request.state_filters or each.state.label in request.state_filters)
