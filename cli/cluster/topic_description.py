"""Describe a topic and its partitions as dicts.

The commands `hmb topics` and `hmb meta` both use this module. In the JSON output of both commands, the fields of a
topic therefore have the same names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hmb.client.admin import ConfigResource, ResourceType, raised
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition

if TYPE_CHECKING:
    from hmb.client import Admin
    from hmb.client.admin import PartitionDescription, TopicDescription


def topic_fields(topic: TopicDescription) -> dict[str, Any]:
    """Return the fields of a topic, for example its name, but no list of its partitions."""
    return {
        "topic": topic.name,
        "topic_id": str(topic.topic_id) if topic.topic_id.int else None,
        "internal": topic.is_internal,
        "partition_count": len(topic.partitions),
        "replication_factor": max((len(partition.replicas) for partition in topic.partitions), default=0),
    }


def partition_fields(partition: PartitionDescription) -> dict[str, Any]:
    """Return the fields of a partition.

    Each broker is represented by its id. If the partition has no leader, the field `leader` is None.
    """
    return {
        "partition": partition.partition,
        "leader": None if partition.leader < 0 else partition.leader,
        "leader_epoch": None if partition.leader_epoch < 0 else partition.leader_epoch,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "offline": list(partition.offline),
    }


def describe_topic(admin: Admin, name: str) -> dict[str, Any]:
    """Return the fields of a topic: its settings, its partitions and their offsets. Raises KafkaError.

    The result contains only the settings that a user has set for this topic.
    """
    topic = raised(admin.describe_topics([name])[name])
    led = [TopicPartition(name, it.partition) for it in topic.partitions if it.leader in admin.cluster.nodes]
    first, end = admin.list_offsets(dict.fromkeys(led, "earliest")), admin.list_offsets(dict.fromkeys(led, "latest"))

    def offset(offsets: dict[TopicPartition, Any], number: int) -> int | None:
        found = offsets.get(TopicPartition(name, number))
        return None if found is None else raised(found).offset

    return topic_fields(topic) | {
        "configs": own_settings(admin, ConfigResource(ResourceType.TOPIC, name)),
        "partitions": [
            partition_fields(it)
            | {"log_start_offset": offset(first, it.partition), "log_end_offset": offset(end, it.partition)}
            for it in topic.partitions
        ],
    }


def own_settings(admin: Admin, resource: ConfigResource) -> dict[str, str | None]:
    """Return the settings that were set for this topic or broker.

    If the broker is older than Kafka 0.11, return an empty dict, because such a broker has no API DescribeConfigs.
    """
    try:
        entries = raised(admin.describe_configs([resource])[resource])
    except KafkaError as error:
        if error.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
        return {}
    return {entry.name: entry.value for entry in entries.values() if entry.source is resource.own_source}
