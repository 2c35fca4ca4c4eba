"""Send whole batches to the leader of an empty partition.

`hmb.Producer` encodes records to batches. A restore already has batches, so this module sends Produce requests itself.
The module sends several requests before it reads their responses, so the broker syncs the records of several requests
together.

If a Produce request of a restore fails, this module does not send the request again, because the broker may have
written the batch already. The restore ends with an error instead. The broker therefore never writes a record twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hmb.client.connection import Connection
from hmb.client.errors import response_error
from hmb.client.producing.idempotence import NEWEST_PRODUCE
from hmb.protocol.enums import Acks
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.produce import ProduceRequest, ProduceResponse
from hmb.protocol.topics import TopicPartition
from hmb.records import RecordBatch
from hmb.records.batch import MAGIC

MAX_REQUESTS, MAX_BYTES = 32, 4 * 1024 * 1024  # limits for the requests and the bytes in flight


def send_batches(connection: Connection, partition: TopicPartition, batches: Iterable[bytes], timeout_ms: int) -> None:
    """Append batches to an empty partition. Their records get the offsets 0, 1, 2 and so on.

    If another client writes to the partition at the same time, the records get other offsets, and the function
    raises KafkaError. It also raises KafkaError if the broker returns an error, or if the broker is older than
    Kafka 0.11. Raises ConnectionFailed if the connection breaks.
    """
    version = connection.version_of(ProduceRequest, NEWEST_PRODUCE)
    if ProduceRequest.magic_of(version) != MAGIC:
        what = f"{connection.address} is older than Kafka 0.11, and cannot store the batches of a backup"
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, what)
    expected = 0
    for group in _groups(batches):
        connection.post_all([_request(partition, batch, timeout_ms) for batch in group], version)
        for batch in group:
            response: ProduceResponse = connection.receive()
            (data,) = response.responses[0].partition_responses
            if data.error_code:
                raise response_error(partition, data.error_code, data.error_message)
            if data.base_offset != expected:
                what = f"{partition}: the batch has the offset {data.base_offset}, not {expected}"
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"{what}, because another client writes to the topic")
            expected += RecordBatch.parse(batch).records_count


def _groups(batches: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Divide the batches into groups. `send_batches` sends a whole group before it reads the first response.

    A group has at most MAX_REQUESTS batches and at most MAX_BYTES bytes. A batch that is larger than MAX_BYTES
    becomes a group of its own.
    """
    group: list[bytes] = []
    size = 0
    for batch in batches:
        if group and (len(group) == MAX_REQUESTS or size + len(batch) > MAX_BYTES):
            yield group
            group, size = [], 0
        group.append(batch)
        size += len(batch)
    if group:
        yield group


def _request(partition: TopicPartition, batch: bytes, timeout_ms: int) -> ProduceRequest:
    topic = ProduceRequest.TopicProduceData
    data = topic.PartitionProduceData(index=partition.partition, records=memoryview(batch))
    topics = [topic(name=partition.topic, partition_data=[data])]
    return ProduceRequest(transactional_id=None, acks=Acks.ALL, timeout_ms=timeout_ms, topic_data=topics)
