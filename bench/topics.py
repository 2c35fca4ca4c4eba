"""What benchmarks ask of a broker besides their measurement: a topic of one partition, its end, its removal."""

from __future__ import annotations

from hmb.client import Connection
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.delete_topics import DeleteTopicsRequest
from hmb.protocol.messages.list_offsets import ListOffsetsRequest

from .peers import HOST

TIMEOUT_MS = 30_000
LATEST = -1


def create(port: int, topic: str) -> None:
    wanted = CreateTopicsRequest.CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
    with Connection(HOST, port) as connection:
        response = connection.send(CreateTopicsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS))
    refuse_errors(response.topics[0].error_code)


def delete(port: int, topic: str) -> None:
    with Connection(HOST, port) as connection:
        version = connection.version_of(DeleteTopicsRequest, at_most=5)  # the last to name topics in `topic_names`
        response = connection.send(DeleteTopicsRequest(topic_names=[topic], timeout_ms=TIMEOUT_MS), version)
    refuse_errors(response.responses[0].error_code)


def end_offset(port: int, topic: str) -> int:
    """The high watermark of partition 0."""
    partition = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    wanted = ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[partition])
    with Connection(HOST, port) as connection:
        response = connection.send(ListOffsetsRequest(replica_id=-1, topics=[wanted]))
    answer = response.topics[0].partitions[0]
    refuse_errors(answer.error_code)
    return int(answer.offset)


def refuse_errors(code: int) -> None:
    if code != ErrorCode.NONE:
        raise KafkaError(ErrorCode(code))
