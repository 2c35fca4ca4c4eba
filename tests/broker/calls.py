"""Helpers for tests that send Produce, Fetch and ListOffsets requests for one partition, and read the responses."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from hmb.protocol.messages.fetch import FetchRequest
from hmb.protocol.messages.list_offsets import ListOffsetsRequest
from hmb.protocol.messages.produce import ProduceRequest
from hmb.records import RecordBatch
from tests.broker.conftest import Asker

NO_ID = uuid.UUID(int=0)


def produce(
    data: bytes | memoryview | RecordBatch,
    *,
    topic: str = "t",
    partition: int = 0,
    acks: int = 1,
    id: uuid.UUID = NO_ID,
) -> ProduceRequest:
    records = data.view if isinstance(data, RecordBatch) else memoryview(data)
    partition_data = ProduceRequest.TopicProduceData.PartitionProduceData(index=partition, records=records)
    topic_data = ProduceRequest.TopicProduceData(name=topic, topic_id=id, partition_data=[partition_data])
    return ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=[topic_data])


def fetch(
    offset: int = 0,
    *,
    topics: Sequence[str] = ("t",),
    id: uuid.UUID = NO_ID,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
    epoch: int = -1,
) -> FetchRequest:
    partition = FetchRequest.FetchTopic.FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=partition_max_bytes, current_leader_epoch=epoch
    )
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=max_bytes,
        topics=[FetchRequest.FetchTopic(topic=topic, topic_id=id, partitions=[partition]) for topic in topics],
    )


def outcome(response: object) -> int:
    """Return the error code of the partition in a Produce or Fetch response, which contains only one partition."""
    topic = response.responses[0]  # type: ignore[attr-defined]
    partitions = getattr(topic, "partition_responses", None) or topic.partitions
    code: int = partitions[0].error_code
    return code


def list_offsets(ask: Asker, timestamp: int, version: int) -> tuple[int, int, int]:
    partition = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=[partition])])
    (answer,) = ask(request, version).topics[0].partitions
    return answer.error_code, answer.timestamp, answer.offset
