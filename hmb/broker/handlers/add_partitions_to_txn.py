"""AddPartitionsToTxn: add partitions to a transaction.

Versions: 0-5; versions 3 and later use the flexible encoding (KIP-482).
Permissions: WRITE on the transactional id and on each topic; for brokers, CLUSTER_ACTION.
Behavior: the broker answers by these rules:
    - *All or none.* For each transaction in a request, the broker adds all partitions or none. A partition that
      does not exist gets UNKNOWN_TOPIC_OR_PARTITION. In versions 0 to 3, a partition of an internal topic gets
      TOPIC_AUTHORIZATION_FAILED. In both cases, all other partitions of the transaction get
      OPERATION_NOT_ATTEMPTED.
    - *Begin.* If the producer has no open transaction, a new transaction begins.
    - *Check.* If `verify_only` is true, the broker adds no partitions. It checks whether the transaction
      already contains them. Each missing partition gets TRANSACTION_ABORTABLE.
    - *Permission.* Versions 4 and 5 are only for brokers. With an authorizer, they need CLUSTER_ACTION on the
      cluster. Without an authorizer, any client can send them. A client that knows the transactional id, the
      producer id and the epoch of another producer can then add partitions to this producer's transaction.
Version notes: clients send versions 0 to 3, which contain one transaction. In a Kafka cluster, brokers send
    versions 4 and 5 to the coordinator, with the transactions of several producers. If a newer producer has
    replaced (*fenced*) the producer, versions 0 and 1 return INVALID_PRODUCER_EPOCH. Later versions return
    PRODUCER_FENCED.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hmb.broker.context import RequestContext
from hmb.broker.transactional import code_for_producer
from hmb.coordinator.transactions.transactional_id import VERSION_2
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.add_partitions_to_txn import (
    FIRST_VERSION_OF_BROKERS,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from hmb.protocol.topics import TopicPartition
from hmb.records.producer_numbers import ProducerIdAndEpoch

Transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
Topic = Transaction.AddPartitionsToTxnTopic
Result = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
TopicResult = Result.AddPartitionsToTxnTopicResult
PartitionResult = TopicResult.AddPartitionsToTxnPartitionResult
Outcome = Callable[[TopicPartition], ErrorCode]


def handle(request: AddPartitionsToTxnRequest, context: RequestContext) -> AddPartitionsToTxnResponse:
    if context.version >= FIRST_VERSION_OF_BROKERS:
        results = [
            Result(transactional_id=t.transactional_id, topic_results=_add(t, context)) for t in request.transactions
        ]
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    one = Transaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_add(one, context))


def _add(wanted: Transaction, context: RequestContext) -> list[TopicResult]:
    partitions = {TopicPartition(topic.name, number) for topic in wanted.topics for number in topic.partitions}
    refused = {partition: code for partition in partitions if (code := _refusal(partition, context))}
    if refused:
        return _results(wanted.topics, lambda each: refused.get(each, ErrorCode.OPERATION_NOT_ATTEMPTED))
    transactions, id = context.broker.transactions, wanted.transactional_id
    producer = ProducerIdAndEpoch(wanted.producer_id, wanted.producer_epoch)
    try:
        if wanted.verify_only:
            known = transactions.verify(id, producer)
            return _results(
                wanted.topics,
                lambda partition: ErrorCode.NONE if partition in known else ErrorCode.TRANSACTION_ABORTABLE,
            )
        version = VERSION_2 if context.version >= FIRST_VERSION_OF_BROKERS else 0
        transactions.add_partitions(id, producer, partitions, version)
    except KafkaError as error:
        code = code_for_producer(error.code, context.header)
        return _results(wanted.topics, lambda partition: code)
    return _results(wanted.topics, lambda partition: ErrorCode.NONE)


def _refusal(partition: TopicPartition, context: RequestContext) -> ErrorCode:
    topic = context.broker.topics.get(partition.topic)
    if topic is not None and topic.is_internal and context.version < FIRST_VERSION_OF_BROKERS:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    is_there = topic is not None and partition.partition in topic.partitions
    return ErrorCode.NONE if is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _results(topics: Sequence[Topic], outcome: Outcome) -> list[TopicResult]:
    return [
        TopicResult(
            name=topic.name,
            results_by_partition=[
                PartitionResult(
                    partition_index=number, partition_error_code=outcome(TopicPartition(topic.name, number))
                )
                for number in topic.partitions
            ],
        )
        for topic in topics
    ]
