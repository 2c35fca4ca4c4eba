"""ListTransactions (66): return the transactional ids that a transaction coordinator knows (KIP-664)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class ListTransactionsRequest(Request, api_key=ApiKey.LIST_TRANSACTIONS, versions="0-2", flexible="0+"):
    """A request for the transactional ids that match all filters. An empty filter matches every id.

    Version 1 adds a filter for the age of a transaction in ms (KIP-994). Version 2 adds a regular expression, which
    the transactional id must match (KIP-1152).
    """

    state_filters:            list[str]  = t.array(t.string)
    producer_id_filters:      list[int]  = t.array(t.int64)
    duration_filter:          int        = t.int64("1+", default=-1)
    transactional_id_pattern: str | None = t.string("2+", nullable="2+", default=None)


class ListTransactionsResponse(Response, api_key=ApiKey.LIST_TRANSACTIONS, versions="0-2", flexible="0+"):
    """The response to ListTransactions: the transactional ids that match the filters of the request.

    If the request filters by states that the broker does not know, `unknown_state_filters` contains these states.
    Versions 1 and 2 have the same layout as version 0.
    """

    class TransactionState(Struct):
        transactional_id:  str = t.string()
        producer_id:       int = t.int64()
        transaction_state: str = t.string()

    throttle_time_ms:      int                    = t.int32()
    error_code:            int                    = t.int16()
    unknown_state_filters: list[str]              = t.array(t.string)
    transaction_states:    list[TransactionState] = t.array(TransactionState)
