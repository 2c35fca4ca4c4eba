"""Reads batches with Fetch, for the page of a broker whose files cannot be read.

A Fetch response contains whole batches, byte by byte as the broker stores them. So the page can show the header, the
records and the annotated bytes of a batch from any broker. Only the position of the batch in its segment is unknown, so
the page names a batch by its first offset.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from hmb.client.admin.brokers import Brokers, PartitionResults, raised
from hmb.client.connection import Connection
from hmb.client.errors import answered_error
from hmb.monitoring.page.log_views import MOST_BATCHES, batch_row, opened_batch
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.fetch import FIRST_VERSION_OF_IDS, FetchRequest, FetchResponse
from hmb.protocol.topics import TopicPartition
from hmb.records import iter_batches

MOST_BYTES = 1 << 20  # of one Fetch response; a broker returns the first batch even if it is larger
NEWEST_BY_NAME = FIRST_VERSION_OF_IDS - 1

Json = dict[str, Any]


def fetched_batches(brokers: Brokers, partition: TopicPartition, offset: int) -> Json:
    """Return rows for the batches from `offset` on. `next` is the offset of the next batch, or None at the end."""
    data, end = _fetch(brokers, partition, offset)
    found = [each for each in iter_batches(data) if each.last_offset >= offset][:MOST_BATCHES]
    following = found[-1].last_offset + 1 if found else offset
    return {
        "from": offset,
        "batches": [batch_row(batch, None) for batch in found],
        "next": following if found and following < end else None,
    }


def fetched_batch(brokers: Brokers, partition: TopicPartition, offset: int) -> Json:
    """Return the header, the records and the annotated bytes of the batch that contains `offset`."""
    data, _ = _fetch(brokers, partition, offset)
    position = 0
    for batch in iter_batches(data):
        if batch.last_offset >= offset:
            whole = bytes(data[position : position + batch.size])
            return {"file": None, **opened_batch(io.BufferedReader(io.BytesIO(whole)), Path(str(partition)), 0)}
        position += batch.size
    raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{partition} has no batch at or after offset {offset}")


def _fetch(brokers: Brokers, partition: TopicPartition, offset: int) -> tuple[memoryview, int]:
    """Return the bytes of batches from `offset` on, and the high watermark. Raises KafkaError."""
    asked = FetchRequest.FetchTopic
    wanted = asked.FetchPartition(partition=partition.partition, fetch_offset=offset, partition_max_bytes=MOST_BYTES)
    request = FetchRequest(max_bytes=MOST_BYTES, topics=[asked(topic=partition.topic, partitions=[wanted])])

    def ask(connection: Connection, _: list[TopicPartition]) -> PartitionResults[tuple[memoryview, int]]:
        version = connection.version_of(FetchRequest, NEWEST_BY_NAME)
        response: FetchResponse = connection.send(request, version)
        if response.error_code:
            return {partition: answered_error(partition, response.error_code)}
        found = response.responses[0].partitions[0]
        if found.error_code:
            return {partition: answered_error(partition, found.error_code)}
        data = found.records if isinstance(found.records, memoryview) else memoryview(b"")
        return {partition: (data, found.high_watermark)}

    return raised(brokers.at_leaders([partition], ask)[partition])
