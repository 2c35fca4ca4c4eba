"""AddPartitionsToTxn (24): these partitions are part of the transaction from now on.  KIP-98.

A transaction's coordinator must know every partition that got records of it, because each of them gets a marker at the
end.  So a producer tells before it writes; since KIP-890 (transaction version 2) the partition's broker tells for it.
"""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class AddPartitionsToTxnRequest(Request, api_key=ApiKey.ADD_PARTITIONS_TO_TXN, versions="0-5", flexible="3+"):
    """Add partitions: one transaction in clients' versions, 0 to 3; several at once in brokers', 4 and later.

    v2: PRODUCER_FENCED is possible.  v3: flexible.  v4: `verify_only` asks whether they are part of it already.
    v5: TRANSACTION_ABORTABLE is possible.  v1 is like v0.
    """

    class AddPartitionsToTxnTransaction(Struct):
        class AddPartitionsToTxnTopic(Struct):
            name:       str       = t.string()
            partitions: list[int] = t.array(t.int32)

        transactional_id: str                           = t.string("4+")
        producer_id:      int                           = t.int64("4+")
        producer_epoch:   int                           = t.int16("4+")
        verify_only:      bool                          = t.boolean("4+")
        topics:           list[AddPartitionsToTxnTopic] = t.array(AddPartitionsToTxnTopic, "4+")

    transactions:                  list[AddPartitionsToTxnTransaction] = t.array(AddPartitionsToTxnTransaction, "4+")
    v3_and_below_transactional_id: str                                 = t.string("0-3")
    v3_and_below_producer_id:      int                                 = t.int64("0-3")
    v3_and_below_producer_epoch:   int                                 = t.int16("0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTransaction.AddPartitionsToTxnTopic] = t.array(
        AddPartitionsToTxnTransaction.AddPartitionsToTxnTopic, "0-3"
    )


class AddPartitionsToTxnResponse(Response, api_key=ApiKey.ADD_PARTITIONS_TO_TXN, versions="0-5", flexible="3+"):
    """Each partition's success or error.  v3: flexible.  v4: by transaction."""

    class AddPartitionsToTxnResult(Struct):
        class AddPartitionsToTxnTopicResult(Struct):
            class AddPartitionsToTxnPartitionResult(Struct):
                partition_index:      int = t.int32()
                partition_error_code: int = t.int16()

            name:                 str                                     = t.string()
            results_by_partition: list[AddPartitionsToTxnPartitionResult] = t.array(AddPartitionsToTxnPartitionResult)

        transactional_id: str                                 = t.string("4+")
        topic_results:    list[AddPartitionsToTxnTopicResult] = t.array(AddPartitionsToTxnTopicResult, "4+")

    throttle_time_ms:       int                            = t.int32()
    error_code:             int                            = t.int16("4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = t.array(AddPartitionsToTxnResult, "4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnResult.AddPartitionsToTxnTopicResult] = t.array(
        AddPartitionsToTxnResult.AddPartitionsToTxnTopicResult, "0-3"
    )
