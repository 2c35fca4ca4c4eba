"""All about one topic, as `hmb topics describe` shows it."""

from typing import TYPE_CHECKING, Any

from hmb.client.admin import ConfigResource, ResourceType, raised
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition

if TYPE_CHECKING:
    from hmb.client import Admin


def describe_topic(admin: "Admin", name: str) -> dict[str, Any]:
    """Its settings of its own, and its partitions: who leads, who holds them, from where to where they reach."""
    topic = raised(admin.describe_topics([name])[name])
    nodes = admin.cluster.nodes
    led = [TopicPartition(name, it.partition) for it in topic.partitions if it.leader in nodes]
    first, end = admin.list_offsets(dict.fromkeys(led, "earliest")), admin.list_offsets(dict.fromkeys(led, "latest"))
    return {
        "topic": name,
        "configs": own_settings(admin, ConfigResource(ResourceType.TOPIC, name)),
        "partitions": [
            {
                "partition": it.partition,
                "leader": f"{nodes[it.leader].host}:{nodes[it.leader].port}" if it.leader in nodes else None,
                "replicas": list(it.replicas),
                "isr": list(it.isr),
                "log_start_offset": _offset(first, TopicPartition(name, it.partition)),
                "log_end_offset": _offset(end, TopicPartition(name, it.partition)),
            }
            for it in topic.partitions
        ],
    }


def own_settings(admin: "Admin", resource: ConfigResource) -> dict[str, str | None]:
    """What was set for the resource itself; nothing where the broker is too old to tell (before 0.11)."""
    try:
        entries = raised(admin.describe_configs([resource])[resource])
    except KafkaError as error:
        if error.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
        return {}
    return {entry.name: entry.value for entry in entries.values() if entry.source is resource.own_source}


def _offset(offsets: dict[TopicPartition, Any], partition: TopicPartition) -> int | None:
    found = offsets.get(partition)
    return None if found is None else raised(found).offset
