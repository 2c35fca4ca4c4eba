"""What `hmb topics` asks besides Metadata: a topic's settings, to show or to alter them, and more partitions."""

from collections.abc import Mapping

from hmb.client import Cluster
from hmb.client.metadata import topic_error
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from hmb.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from hmb.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

TOPIC = 2  # a kind of resource
DYNAMIC_TOPIC = 1  # a source: the topic itself
SET, DELETE = 0, 1
TIMEOUT_MS = 30_000


def topic_settings(cluster: Cluster, topic: str) -> dict[str, str | None]:
    """The settings that the topic has itself; none where the broker is too old to tell (before 1.1)."""
    wanted = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=TOPIC, resource_name=topic, configuration_keys=None
    )
    try:
        version = cluster.version_of(DescribeConfigsRequest)
    except KafkaError as error:
        if error.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
        return {}
    if version == 0:  # which does not tell the source
        return {}
    response: DescribeConfigsResponse = cluster.send(DescribeConfigsRequest(resources=[wanted]), version)
    (result,) = response.results
    if result.error_code:
        raise topic_error(topic, result.error_code, result.error_message)
    return {entry.name: entry.value for entry in result.configs if entry.config_source == DYNAMIC_TOPIC}


def alter_settings(cluster: Cluster, topic: str, changes: Mapping[str, str | None]) -> None:
    """Set these; None: go back to the default."""
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(resource_type=TOPIC, resource_name=topic)
    resource.configs = [
        resource.AlterableConfig(name=name, config_operation=DELETE if value is None else SET, value=value)
        for name, value in changes.items()
    ]
    response: IncrementalAlterConfigsResponse = cluster.send(IncrementalAlterConfigsRequest(resources=[resource]))
    (answer,) = response.responses
    if answer.error_code:
        raise topic_error(topic, answer.error_code, answer.error_message)


def add_partitions(cluster: Cluster, topic: str, count: int) -> None:
    """Give the topic so many partitions in all."""
    wanted = CreatePartitionsRequest.CreatePartitionsTopic(name=topic, count=count, assignments=None)
    request = CreatePartitionsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS)
    response: CreatePartitionsResponse = cluster.send_to_controller(request)
    (result,) = response.results
    if result.error_code:
        raise topic_error(topic, result.error_code, result.error_message)
