"""Builds the requests of a transaction, and finds the errors in their responses.

A producer never sends its transaction version to the broker. The broker derives this version from the versions of the
producer's requests. For example, a Produce request of version 12 also adds its partitions to the transaction. A Produce
request of version 11 does not. So all requests of a producer must have versions from the same row of this table:
    transaction version    Produce     TxnOffsetCommit    EndTxn
    1                      up to 11    up to 4            up to 4
    2                      12          5                  5
Produce 13 contains topic ids instead of topic names, and HMB's producer does not use it.

Source: KIP-890.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hmb.client.group.interface import GroupMetadata, Offsets, with_metadata
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from hmb.protocol.messages.add_partitions_to_txn import (
    FIRST_VERSION_OF_BROKERS,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from hmb.protocol.messages.end_txn import FIRST_END_TXN_VERSION_OF_EPOCHS, EndTxnRequest, EndTxnResponse
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from hmb.protocol.messages.produce import FIRST_PRODUCE_VERSION_OF_IDS, ProduceRequest
from hmb.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from hmb.protocol.schema import Request
from hmb.protocol.topics import TopicPartition
from hmb.records.producer_numbers import ProducerIdAndEpoch

FEATURE = "transaction.version"  # a feature of the cluster; its level is the newest supported transaction version
# From FIRST_VERSION_OF_BROKERS on, the versions of AddPartitionsToTxn are only for requests between brokers. Clients
# use the older versions.
NEWEST_ADD_PARTITIONS = FIRST_VERSION_OF_BROKERS - 1
NEWEST_ADD_OFFSETS, NEWEST_INIT = AddOffsetsToTxnRequest.versions[-1], InitProducerIdRequest.versions[-1]
FIRST_INIT_WITH_EPOCH = InitProducerIdRequest.first_version("producer_epoch")
FIRST_COMMIT_WITH_MEMBER = TxnOffsetCommitRequest.first_version("member_id")


class TransactionVersion(NamedTuple):
    """A transaction version (KIP-890), and the versions of requests that belong to it.

    `number` is the transaction version. Each other field contains the versions of one request. For example, if
    `produce` is `range(12, 13)`, the producer sends Produce requests only in version 12.
    """

    number: int
    produce: range
    commit: range  # the versions of TxnOffsetCommit
    end: range

    def check(self, kind: type[Request], version: int, allowed: range) -> None:
        """Raise KafkaError if the broker is too old for this `TransactionVersion`.

        For example, transaction version 2 requires Produce requests of version 12. `kind` is `ProduceRequest`, and the
        range `allowed` contains only 12. If the broker supports Produce requests only up to version 11, `version` is
        11, and the method raises KafkaError.
        """
        if version not in allowed:
            what = f"the broker supports {kind.__name__} only up to version {version}: transaction version "
            what += f"{self.number} needs version {allowed[0]}; close the producer, and start a new one"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, what)


VERSION_1 = TransactionVersion(
    number=1,
    produce=range(ProduceRequest.FIRST_VERSION_OF_ADDING),
    commit=range(TxnOffsetCommitRequest.FIRST_VERSION_OF_ADDING),
    end=range(FIRST_END_TXN_VERSION_OF_EPOCHS),
)
VERSION_2 = TransactionVersion(
    number=2,
    produce=range(ProduceRequest.FIRST_VERSION_OF_ADDING, FIRST_PRODUCE_VERSION_OF_IDS),
    commit=range(TxnOffsetCommitRequest.FIRST_VERSION_OF_ADDING, TxnOffsetCommitRequest.versions.stop),
    end=range(FIRST_END_TXN_VERSION_OF_EPOCHS, EndTxnRequest.versions.stop),
)


def add_partitions(
    transactional_id: str, producer: ProducerIdAndEpoch, partitions: Iterable[TopicPartition]
) -> AddPartitionsToTxnRequest:
    topic_of = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction.AddPartitionsToTxnTopic
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[topic_of(name=name, partitions=numbers) for name, numbers in topics.items()],
    )


def add_offsets(transactional_id: str, producer: ProducerIdAndEpoch, group_id: str) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        group_id=group_id,
    )


def offset_commit(
    transactional_id: str, producer: ProducerIdAndEpoch, group: GroupMetadata, offsets: Offsets, version: int
) -> TxnOffsetCommitRequest:
    partition_of = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic.TxnOffsetCommitRequestPartition
    topics: dict[str, TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic] = {}
    for (name, partition), offset in offsets.items():
        committed = with_metadata(offset)
        topic = topics.setdefault(name, TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=name))
        topic.partitions.append(
            partition_of(
                partition_index=partition,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                committed_metadata=committed.metadata,
            )
        )
    request = TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group.group_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=list(topics.values()),
    )
    if version >= FIRST_COMMIT_WITH_MEMBER:
        request.generation_id, request.member_id = group.generation_id, group.member_id
        request.group_instance_id = group.group_instance_id
    return request


def end(transactional_id: str, producer: ProducerIdAndEpoch, *, committed: bool) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=committed,
    )


def error_codes(response: AddOffsetsToTxnResponse | EndTxnResponse | InitProducerIdResponse) -> list[tuple[None, int]]:
    return [(None, response.error_code)]


def error_codes_of_partitions(response: AddPartitionsToTxnResponse) -> list[tuple[TopicPartition, int]]:
    return [
        (TopicPartition(topic.name, result.partition_index), result.partition_error_code)
        for topic in response.results_by_topic_v3_and_below
        for result in topic.results_by_partition
    ]


def error_codes_of_offsets(response: TxnOffsetCommitResponse) -> list[tuple[TopicPartition, int]]:
    return [
        (TopicPartition(topic.name, partition.partition_index), partition.error_code)
        for topic in response.topics
        for partition in topic.partitions
    ]
