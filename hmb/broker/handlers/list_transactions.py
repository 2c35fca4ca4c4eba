"""ListTransactions: list transactional ids, with the state of their current or last transaction.

Versions: 0-2; all use the flexible encoding (KIP-482).
Permissions: DESCRIBE on each transactional id.
Behavior: the response contains the transactional ids that pass all filters of the request. If a filter names a
    state that does not exist, the response also contains this name, in the field `unknown_state_filters`.
Version notes: version 1 adds a filter for transactions that began more than a given time (ms) ago. Version 2 adds
    a regular expression, which must match the whole transactional id. If the expression is invalid, the error is
    INVALID_REGULAR_EXPRESSION.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.coordinator.consumer.topic_regex import TopicRegex
from hmb.coordinator.transactions.states import TransactionState
from hmb.coordinator.transactions.transactional_id import Transaction
from hmb.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

TransactionResponse = ListTransactionsResponse.TransactionState
STATES = {state.label for state in TransactionState}


class Filters(NamedTuple):
    """The filters of a ListTransactions request. An empty set selects all transactions."""

    states: Set[str]
    producer_ids: Set[int]
    duration: int  # in ms; a negative number selects all transactions

    def fit(self, each: Transaction, now: int) -> bool:
        """Return whether the transaction `each` passes all filters at the time `now` (ms)."""
        lasts = self.duration < 0 or now - each.started > self.duration
        is_one_of_them = not self.producer_ids or each.producer_id in self.producer_ids
        return lasts and is_one_of_them and (not self.states or each.state.label in self.states)


def handle(request: ListTransactionsRequest, context: RequestContext) -> ListTransactionsResponse:
    unknown = [name for name in request.state_filters if name not in STATES]
    response = ListTransactionsResponse(unknown_state_filters=list(dict.fromkeys(unknown)))
    with error_code_in(response):
        pattern = request.transactional_id_pattern
        regex, now = TopicRegex(pattern) if pattern else None, context.broker.clock.now_ms()
        filters = Filters(set(request.state_filters), set(request.producer_id_filters), request.duration_filter)
        response.transaction_states = [
            TransactionResponse(
                transactional_id=each.transactional_id,
                producer_id=each.producer_id,
                transaction_state=each.state.label,
            )
            for each in context.broker.transactions.list()
            if filters.fit(each, now) and (regex is None or regex.matches(each.transactional_id))
        ]
    return response
