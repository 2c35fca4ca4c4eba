"""What benchmarks ask of a broker besides their measurement: a topic of one partition, its settings, end, removal."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hmb.client import Connection
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.delete_topics import DeleteTopicsRequest
from hmb.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from hmb.protocol.messages.list_offsets import ListOffsetsRequest

from .peers import HOST

TIMEOUT_MS = 30_000
LATEST = -1
TOPIC_RESOURCE = 2
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


def create(port: int, topic: str, settings: Mapping[str, str] = NO_SETTINGS) -> None:
    make = CreateTopicsRequest.CreatableTopic.CreatableTopicConfig
    configs = [make(name=name, value=value) for name, value in settings.items()]
    wanted = CreateTopicsRequest.CreatableTopic(name=topic, num_partitions=1, replication_factor=1, configs=configs)
    with Connection(HOST, port) as connection:
        response = connection.send(CreateTopicsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS))
    refuse_errors(response.topics[0].error_code)


def alter(port: int, topic: str, name: str, value: str) -> None:
    """Change one setting."""
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=TOPIC_RESOURCE,
        resource_name=topic,
        configs=[IncrementalAlterConfigsRequest.AlterConfigsResource.AlterableConfig(name=name, value=value)],
    )
    with Connection(HOST, port) as connection:
        response = connection.send(IncrementalAlterConfigsRequest(resources=[resource]))
    refuse_errors(response.responses[0].error_code)


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
