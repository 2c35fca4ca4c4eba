"""Fetches batches from the leader of a partition, byte for byte as the leader stores them.

A consumer decodes batches to records. A backup has to keep the encoded batches, and the web page of a broker shows
their bytes. A backup and the web page therefore call `fetch_batches`.
"""

from __future__ import annotations

from typing import NamedTuple

from hmb.client.admin.brokers import Brokers, PartitionResults, raised
from hmb.client.connection import Connection
from hmb.client.errors import response_error
from hmb.protocol.enums import IsolationLevel
from hmb.protocol.messages.fetch import LAST_FETCH_VERSION_OF_NAMES, FetchRequest, FetchResponse
from hmb.protocol.topics import TopicPartition


class WholeBatches(NamedTuple):
    """The bytes of whole batches, and the high watermark of their partition."""

    data: memoryview
    high_watermark: int


def fetch_batches(
    brokers: Brokers,
    partition: TopicPartition,
    offset: int,
    max_bytes: int,
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> WholeBatches:
    """Return the batch that contains `offset`, and the batches after it, up to `max_bytes` bytes.

    The first batch can begin below `offset`. The leader returns this batch even if it is larger than `max_bytes`.
    If `offset` is the end of the log, the result is empty, because the leader does not wait for new records.

    With READ_COMMITTED, the batches end at the last stable offset. They still include transaction markers and
    batches of aborted transactions. Raises KafkaError and ConnectionFailed.
    """
    topic = FetchRequest.FetchTopic
    wanted = topic.FetchPartition(partition=partition.partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        topics=[topic(topic=partition.topic, partitions=[wanted])],
    )

    def ask(connection: Connection, _: list[TopicPartition]) -> PartitionResults[WholeBatches]:
        version = connection.version_of(FetchRequest, LAST_FETCH_VERSION_OF_NAMES)
        response: FetchResponse = connection.send(request, version)
        if response.error_code:
            return {partition: response_error(partition, response.error_code)}
        found = response.responses[0].partitions[0]
        if found.error_code:
            return {partition: response_error(partition, found.error_code)}
        data = found.records if isinstance(found.records, memoryview) else memoryview(b"")
        return {partition: WholeBatches(data, found.high_watermark)}

    return raised(brokers.at_leaders([partition], ask)[partition])
