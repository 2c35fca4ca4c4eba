"""AddPartitionsToTxn (24): add partitions to a transaction (KIP-98).

The transaction coordinator must know every partition to which a transaction writes. At the end of the transaction, each
of these partitions gets a COMMIT or ABORT marker. A producer therefore sends AddPartitionsToTxn before it writes to a
partition. With transaction version 2 (KIP-890), the partition's leader sends the request instead of the producer.
"""

from typing import ClassVar

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class AddPartitionsToTxnRequest(Request, api_key=ApiKey.ADD_PARTITIONS_TO_TXN, versions="0-5", flexible="3+"):
    """A request to add partitions to transactions.

    Clients send versions 0 to 3, with one transaction. Brokers send versions 4 and 5, with a list of transactions.

    - Version 1 has the same layout as version 0.
    - From version 2 on, the response can contain the error PRODUCER_FENCED.
    - Version 3 uses the flexible encoding (KIP-482).
    - Version 4 adds `verify_only`. If this flag is set, the request only asks whether the transaction contains the
      partitions.
    - From version 5 on, the response can contain the error TRANSACTION_ABORTABLE.
    """

    FIRST_VERSION_OF_FENCED: ClassVar[int] = 2

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
    v3_and_below_topics: list[AddPartitionsToTxnTransaction.AddPartitionsToTxnTopic] = t.array(AddPartitionsToTxnTransaction.AddPartitionsToTxnTopic, "0-3")


class AddPartitionsToTxnResponse(Response, api_key=ApiKey.ADD_PARTITIONS_TO_TXN, versions="0-5", flexible="3+"):
    """An error code for each partition.

    Version 3 uses the flexible encoding (KIP-482). Version 4 groups the partitions by transaction.
    """

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
    results_by_topic_v3_and_below: list[AddPartitionsToTxnResult.AddPartitionsToTxnTopicResult] = t.array(AddPartitionsToTxnResult.AddPartitionsToTxnTopicResult, "0-3")


FIRST_VERSION_OF_BROKERS = AddPartitionsToTxnRequest.first_version("transactions")
