"""DescribeTransactions (65): return the state that the coordinator stores for each transactional id (KIP-664)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class DescribeTransactionsRequest(Request, api_key=ApiKey.DESCRIBE_TRANSACTIONS, versions="0", flexible="0+"):
    """The transactional ids to describe."""

    transactional_ids: list[str] = t.array(t.string)


class DescribeTransactionsResponse(Response, api_key=ApiKey.DESCRIBE_TRANSACTIONS, versions="0", flexible="0+"):
    """The state of each transactional id, and the partitions of its transaction.

    When a transaction ends, the coordinator writes a COMMIT or ABORT marker to each partition of the transaction. While
    the coordinator writes the markers, the response lists only the partitions that have not yet received their marker.
    """

    class TransactionState(Struct):
        class TopicData(Struct):
            topic:      str       = t.string()
            partitions: list[int] = t.array(t.int32)

        error_code:                int             = t.int16()
        transactional_id:          str             = t.string()
        transaction_state:         str             = t.string()
        transaction_timeout_ms:    int             = t.int32()
        transaction_start_time_ms: int             = t.int64()
        producer_id:               int             = t.int64()
        producer_epoch:            int             = t.int16()
        topics:                    list[TopicData] = t.array(TopicData)

    throttle_time_ms:   int                    = t.int32()
    transaction_states: list[TransactionState] = t.array(TransactionState)
