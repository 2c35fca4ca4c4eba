"""ListTransactions (66): the transactional ids that a coordinator knows.  KIP-664."""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class ListTransactionsRequest(Request, api_key=ApiKey.LIST_TRANSACTIONS, versions="0-2", flexible="0+"):
    """Those that fit all of these, where something is asked for.

    v1: transactions that last longer than so many ms (KIP-994).  v2: ids that match a regular expression (KIP-1152).
    """

    state_filters:            list[str]  = t.array(t.string)
    producer_id_filters:      list[int]  = t.array(t.int64)
    duration_filter:          int        = t.int64("1+", default=-1)
    transactional_id_pattern: str | None = t.string("2+", nullable="2+", default=None)


class ListTransactionsResponse(Response, api_key=ApiKey.LIST_TRANSACTIONS, versions="0-2", flexible="0+"):
    """The ids, and which of the states asked for there are none of.  v1 and v2 are like v0."""

    class TransactionState(Struct):
        transactional_id:  str = t.string()
        producer_id:       int = t.int64()
        transaction_state: str = t.string()

    throttle_time_ms:      int                    = t.int32()
    error_code:            int                    = t.int16()
    unknown_state_filters: list[str]              = t.array(t.string)
    transaction_states:    list[TransactionState] = t.array(TransactionState)
