"""Contains the methods of `Admin` for the logs of partitions: list offsets, delete records, describe producers.

The admin sends requests about offsets, records and producers to the leader of each partition. Consumers can
read a partition from its *log start offset* up to the high watermark. To delete old records, the leader
increases the log start offset, so consumers can no longer read these records. Later, the leader deletes the
files (segments) that contain only records below the log start offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from hmb.client.admin.brokers import Brokers, PartitionResults, by_topic
from hmb.client.arguments import by_partition, list_of_partitions
from hmb.client.connection import Connection
from hmb.client.errors import response_error
from hmb.client.offsets import FIRST_VERSION_OF_ISOLATION, ListedOffset, check_isolation_level, request_offsets
from hmb.defaults import IsolationLevelName, OffsetName
from hmb.protocol.enums import EARLIEST, EARLIEST_LOCAL, ISOLATION_LEVELS, LATEST, LATEST_TIERED, MAX_TIMESTAMP
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from hmb.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from hmb.protocol.messages.list_offsets import FIRST_VERSION_OF_TIMESTAMP, ListOffsetsRequest
from hmb.protocol.topics import TopicPartition

OffsetWord = OffsetName | Literal["max-timestamp", "earliest-local", "latest-tiered"]
OffsetSpec = OffsetWord | int
TIMESTAMPS: dict[OffsetWord, int] = {  # each word, and the timestamp that stands for it in a ListOffsets request
    "earliest": EARLIEST,
    "latest": LATEST,
    "max-timestamp": MAX_TIMESTAMP,
    "earliest-local": EARLIEST_LOCAL,
    "latest-tiered": LATEST_TIERED,
}
HIGH_WATERMARK = -1  # stands for the high watermark: delete all records that consumers can read


class PartitionProducer(NamedTuple):
    """The data that the leader of a partition stores about one idempotent or transactional producer.

    If the producer has no open transaction in the partition, `current_txn_start_offset` is -1.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int


def list_offsets(
    brokers: Brokers,
    specs: Mapping[TopicPartition, OffsetSpec],
    *,
    isolation_level: IsolationLevelName = "read_uncommitted",
) -> PartitionResults[ListedOffset]:
    """Return one offset for each partition in `specs`.

    `specs` maps a partition to a word or to a timestamp in ms. For example, "earliest" stands for the log start
    offset, and "latest" stands for the end of the log. A timestamp stands for the offset of the first record at
    or after this timestamp.

    Brokers before Kafka 0.10.1 return a less exact offset for a timestamp. They look for the last segment that
    was changed at or before the timestamp, and return the first offset of this segment.
    """
    check_isolation_level(isolation_level)
    asked = by_partition("offsets to list", specs, '"latest"')

    def ask(connection: Connection, partitions: list[TopicPartition]) -> PartitionResults[ListedOffset]:
        version = connection.version_of(ListOffsetsRequest)
        wanted = {partition: _timestamp(asked[partition], version, connection) for partition in partitions}
        if isolation_level == "read_committed" and version < FIRST_VERSION_OF_ISOLATION:
            what = f"{connection.address} is older than Kafka 0.11 and has no committed records"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, what)
        return request_offsets(connection, wanted, ISOLATION_LEVELS[isolation_level], brokers.timeout_ms)

    return brokers.at_leaders(asked, ask)


def delete_records(brokers: Brokers, before: Mapping[TopicPartition, int]) -> PartitionResults[int]:
    """Delete old records of partitions. Return the new log start offset of each partition.

    `before` maps each partition to an offset. The records below this offset are deleted. With HIGH_WATERMARK instead of
    an offset, all records that consumers can read are deleted. The cleanup policy of the topic must be "delete". Needs
    Kafka 0.11.
    """
    offsets = by_partition("offsets to delete before", before, "5")

    def ask(connection: Connection, partitions: list[TopicPartition]) -> PartitionResults[int]:
        asked = DeleteRecordsRequest.DeleteRecordsTopic
        request = DeleteRecordsRequest(timeout_ms=brokers.timeout_ms)
        for topic, numbers in by_topic(partitions).items():
            deleted = [
                asked.DeleteRecordsPartition(partition_index=it, offset=offsets[TopicPartition(topic, it)])
                for it in numbers
            ]
            request.topics.append(asked(name=topic, partitions=deleted))
        response: DeleteRecordsResponse = connection.send(request)
        return {
            (name := TopicPartition(topic.name, answer.partition_index)): response_error(name, answer.error_code)
            if answer.error_code
            else answer.low_watermark
            for topic in response.topics
            for answer in topic.partitions
        }

    return brokers.at_leaders(offsets, ask)


def describe_producers(
    brokers: Brokers, partitions: Iterable[TopicPartition]
) -> PartitionResults[tuple[PartitionProducer, ...]]:
    """Return the producers that each partition's leader knows. Needs Kafka 2.8."""

    def ask(
        connection: Connection, partitions: list[TopicPartition]
    ) -> PartitionResults[tuple[PartitionProducer, ...]]:
        topics = [
            DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=numbers)
            for topic, numbers in by_topic(partitions).items()
        ]
        response: DescribeProducersResponse = connection.send(DescribeProducersRequest(topics=topics))
        return {
            (name := TopicPartition(topic.name, answer.partition_index)): response_error(
                name, answer.error_code, answer.error_message
            )
            if answer.error_code
            else tuple(_producer(it) for it in answer.active_producers)
            for topic in response.topics
            for answer in topic.partitions
        }

    return brokers.at_leaders(list_of_partitions(partitions), ask)


def _timestamp(spec: OffsetSpec, version: int, connection: Connection) -> int:
    """Return the number that a ListOffsets request contains as its timestamp. For example, "latest" becomes -1.

    Raises KafkaError if the broker does not support this kind of offset.
    """
    if isinstance(spec, int):
        return spec
    timestamp = TIMESTAMPS[spec]
    first_version = FIRST_VERSION_OF_TIMESTAMP[timestamp]
    if version < first_version:
        what = f"{connection.address} knows LIST_OFFSETS up to version {version}, {spec} needs version {first_version}"
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, what)
    return timestamp


def _producer(
    state: DescribeProducersResponse.TopicResponse.PartitionResponse.ProducerState,
) -> PartitionProducer:
    return PartitionProducer(
        state.producer_id,
        state.producer_epoch,
        state.last_sequence,
        state.last_timestamp,
        state.coordinator_epoch,
        state.current_txn_start_offset,
    )
