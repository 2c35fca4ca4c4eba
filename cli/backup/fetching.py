"""Fetching the batches of a partition from its leader, byte for byte as the leader stores them.

A consumer decodes batches to records. A backup must keep the batches, so this module sends Fetch requests itself. The
isolation level is `read_committed`: the leader then returns batches only up to the last stable offset. Among them are
batches of aborted transactions and transaction markers, and the backup keeps both.
"""

from __future__ import annotations

from collections.abc import Iterator

from hmb.client.admin.brokers import Brokers, PartitionResults, raised
from hmb.client.admin.records import list_offsets
from hmb.client.connection import Connection
from hmb.client.consuming.simple_consumer import NEWEST_FETCH_BY_NAME, PartitionData
from hmb.client.errors import answered_error
from hmb.protocol.enums import IsolationLevel
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.fetch import FetchRequest, FetchResponse
from hmb.protocol.topics import TopicPartition
from hmb.records import Batch, iter_batches

MAX_BYTES = 8 * 1024 * 1024  # of one Fetch response; the leader returns at least one batch, even if it is larger


def batches(brokers: Brokers, partition: TopicPartition, start: int, end: int) -> Iterator[Batch]:
    """Yield the batches of a partition from the offset `start` up to the offset `end`. Check each batch's checksum.

    Retention may delete records while the backup runs. The function then continues at the new log start offset. Raises
    KafkaError and ConnectionFailed.
    """
    position = start
    while position < end:
        data = _fetch(brokers, partition, position)
        if isinstance(data, KafkaError):
            position = _new_start(brokers, partition, position, data)
            continue
        before = position
        for batch in iter_batches(data.records if isinstance(data.records, memoryview) else b""):
            if position <= batch.last_offset < end:  # The response may begin with batches below `position`.
                batch.check()
                yield batch
            position = max(position, batch.last_offset + 1)
        if position == before:
            what = f"{partition}: the leader returns no batch at offset {position}, but the partition ends at {end}"
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, what)


def _new_start(brokers: Brokers, partition: TopicPartition, position: int, error: KafkaError) -> int:
    """Return the log start offset, if the records at `position` were deleted meanwhile. Otherwise raise `error`."""
    if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
        raise error
    start = raised(list_offsets(brokers, {partition: "earliest"})[partition]).offset
    if start <= position:
        raise error
    return start


def _fetch(brokers: Brokers, partition: TopicPartition, offset: int) -> PartitionData | KafkaError:
    def ask(connection: Connection, partitions: list[TopicPartition]) -> PartitionResults[PartitionData]:
        version = connection.version_of(FetchRequest, NEWEST_FETCH_BY_NAME)
        response: FetchResponse = connection.send(_request(partition, offset), version)
        if response.error_code:
            return {partition: answered_error(partition, response.error_code)}
        data = response.responses[0].partitions[0]
        return {partition: answered_error(partition, data.error_code) if data.error_code else data}

    return brokers.at_leaders([partition], ask)[partition]


def _request(partition: TopicPartition, offset: int) -> FetchRequest:
    topic = FetchRequest.FetchTopic
    wanted = topic.FetchPartition(
        partition=partition.partition, fetch_offset=offset, partition_max_bytes=MAX_BYTES
    )
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=MAX_BYTES,
        isolation_level=IsolationLevel.READ_COMMITTED,
        topics=[topic(topic=partition.topic, partitions=[wanted])],
    )
