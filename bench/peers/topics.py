"""What benchmarks ask of a broker besides their measurement: a topic, its settings, end, removal."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType

from hmb.client import Connection
from hmb.client.metadata import parse_servers
from hmb.protocol.enums import LATEST
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.delete_topics import DeleteTopicsRequest
from hmb.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from hmb.protocol.messages.list_offsets import ListOffsetsRequest
from hmb.protocol.messages.metadata import MetadataRequest

TIMEOUT_MS = 30_000
TOPIC_RESOURCE = 2
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


def connect(bootstrap: str) -> Connection:
    return Connection(*parse_servers(bootstrap)[0])


def create(bootstrap: str, topic: str, settings: Mapping[str, str] = NO_SETTINGS, *, partitions: int = 1) -> None:
    """Kafka 0.8.2 has no API for it: there, asking for a topic makes one with num.partitions."""
    make = CreateTopicsRequest.CreatableTopic.CreatableTopicConfig
    configs = [make(name=name, value=value) for name, value in settings.items()]
    wanted = CreateTopicsRequest.CreatableTopic(
        name=topic, num_partitions=partitions, replication_factor=1, configs=configs
    )
    with connect(bootstrap) as connection:
        if not connection.knows(CreateTopicsRequest):
            await_leader(connection, topic)
            return
        response = connection.send(CreateTopicsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS))
    refuse_errors(response.topics[0].error_code)


def await_leader(connection: Connection, topic: str) -> None:
    """Ask for a topic until its partition has a leader."""
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=topic)])
    deadline = time.monotonic() + TIMEOUT_MS / 1000
    while True:
        found = connection.send(request).topics[0]
        code = found.error_code or found.partitions[0].error_code
        if not code:
            return
        if time.monotonic() > deadline:
            refuse_errors(code)
        time.sleep(0.05)


def alter(bootstrap: str, topic: str, name: str, value: str) -> None:
    """Change one setting."""
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=TOPIC_RESOURCE,
        resource_name=topic,
        configs=[IncrementalAlterConfigsRequest.AlterConfigsResource.AlterableConfig(name=name, value=value)],
    )
    with connect(bootstrap) as connection:
        response = connection.send(IncrementalAlterConfigsRequest(resources=[resource]))
    refuse_errors(response.responses[0].error_code)


def delete(bootstrap: str, topic: str) -> None:
    """Kafka 0.8.2 has no API for this either, and keeps it."""
    with connect(bootstrap) as connection:
        if not connection.knows(DeleteTopicsRequest):
            return
        version = connection.version_of(DeleteTopicsRequest, at_most=5)  # the last to name topics in `topic_names`
        response = connection.send(DeleteTopicsRequest(topic_names=[topic], timeout_ms=TIMEOUT_MS), version)
    refuse_errors(response.responses[0].error_code)


def end_offset(bootstrap: str, topic: str) -> int:
    """The high watermark of partition 0."""
    partition = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    wanted = ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[partition])
    with connect(bootstrap) as connection:
        version = connection.version_of(ListOffsetsRequest)
        response = connection.send(ListOffsetsRequest(replica_id=-1, topics=[wanted]), version)
    answer = response.topics[0].partitions[0]
    refuse_errors(answer.error_code)
    return int(answer.offset if version else answer.old_style_offsets[0])


def refuse_errors(code: int) -> None:
    if code != ErrorCode.NONE:
        raise KafkaError(ErrorCode(code))
