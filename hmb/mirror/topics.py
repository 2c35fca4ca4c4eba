"""Creates topics in the target cluster, with the settings and partition counts of the source topics.

The mirror copies only those settings of a topic that a user has set. It does not copy the defaults of the brokers.
The mirror never copies these settings, even if a user has set them:
- settings that depend on replicas, such as `min.insync.replicas`, because the target may have fewer brokers
- settings for timestamps, because the copy must keep the timestamps of the source
- settings for tiered storage, and the old setting `message.format.version`
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from hmb.client.admin import Admin, ConfigResource, NewTopic, TopicDescription
from hmb.client.backoff import RETRY_PAUSE
from hmb.mirror.errors import MirrorError, explained
from hmb.mirror.names import TopicChoice
from hmb.protocol.enums import ConfigSource, ResourceType
from hmb.protocol.errors import ErrorCode, KafkaError

WAIT_FOR_TOPICS = 30.0  # seconds
LEFT_OUT = re.compile(
    r"(leader|follower)\.replication\.throttled\.replicas|min\.insync\.replicas|unclean\.leader\.election\.enable"
    r"|message\.timestamp\..*|remote\..*|local\.retention\..*|message\.format\.version"
)


@dataclass(frozen=True, slots=True)
class MirroredTopic:
    """A topic of the source, and the name of its copy."""

    name: str
    target: str
    partitions: int


def chosen_topics(source: Admin, choice: TopicChoice) -> list[TopicDescription]:
    """Return the topics of the source that the mirror copies, sorted by name."""
    described = source.describe_topics()
    topics = [it for it in described.values() if isinstance(it, TopicDescription) and not it.is_internal]
    return sorted((topic for topic in topics if choice.copies(topic.name)), key=lambda topic: topic.name)


def prepare_topics(
    source: Admin, target: Admin, topics: list[TopicDescription], choice: TopicChoice
) -> list[MirroredTopic]:
    """Create the missing topics and partitions at the target, and copy the settings of each topic there.

    Then wait until each partition has a leader. Raises MirrorError in these cases:

    - The target refuses a topic, a partition or a setting.
    - A topic has more partitions at the target than at the source.
    - A partition has no leader after WAIT_FOR_TOPICS seconds.
    """
    if not topics:
        return []
    resources = {topic.name: ConfigResource(ResourceType.TOPIC, topic.name) for topic in topics}
    settings = {
        name: {entry.name: entry.value or "" for entry in found.values() if _is_copied(entry.name, entry.source)}
        for name, resource in resources.items()
        if not isinstance(found := source.describe_configs([resource])[resource], KafkaError)
    }
    existing = target.describe_topics([choice.target_name(topic.name) for topic in topics])
    mirrored = []
    for topic in topics:
        name = choice.target_name(topic.name)
        wanted, there = settings.get(topic.name, {}), existing[name]
        if isinstance(there, TopicDescription):
            _grow(target, there, len(topic.partitions))
            _set(target, name, wanted)
        elif there.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            _create(target, NewTopic(name, len(topic.partitions), configs=wanted))
        else:
            raise explained("target", there)
        mirrored.append(MirroredTopic(topic.name, name, len(topic.partitions)))
    wait_for_leaders(target, {topic.target: topic.partitions for topic in mirrored})
    return mirrored


def wait_for_leaders(admin: Admin, partitions: Mapping[str, int]) -> None:
    """Wait until each partition of the new topics has a leader. Raises MirrorError after WAIT_FOR_TOPICS seconds."""
    deadline = time.monotonic() + WAIT_FOR_TOPICS
    while True:
        described = admin.describe_topics(list(partitions))
        if all(_is_ready(described[topic], count) for topic, count in partitions.items()):
            break
        if time.monotonic() > deadline:
            raise MirrorError(f"the new topics {', '.join(partitions)} have no leaders after {WAIT_FOR_TOPICS:.0f} s")
        time.sleep(RETRY_PAUSE)
    for topic in partitions:
        admin.cluster.forget(topic)


def _is_ready(topic: TopicDescription | KafkaError, partitions: int) -> bool:
    if isinstance(topic, KafkaError):
        return False
    return len(topic.partitions) >= partitions and all(it.leader >= 0 for it in topic.partitions)


def _is_copied(name: str, source: ConfigSource) -> bool:
    return source is ConfigSource.DYNAMIC_TOPIC_CONFIG and not LEFT_OUT.fullmatch(name)


def _create(target: Admin, topic: NewTopic) -> None:
    created = target.create_topics([topic])[topic.name]
    if isinstance(created, KafkaError) and created.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
        raise MirrorError(
            f"target: topic {topic.name!r} cannot be created: {created.message} ({created.code.name}); "
            "create it yourself, or leave it out with --exclude"
        )


def _grow(target: Admin, there: TopicDescription, wanted: int) -> None:
    """Add partitions to the target topic until it has `wanted` partitions, as many as the source topic.

    Both topics need the same number, because a producer uses this number to choose the partition for a key. Raises
    MirrorError if the target topic has more partitions.
    """
    if len(there.partitions) > wanted:
        raise MirrorError(
            f"target: topic {there.name!r} has {len(there.partitions)} partitions, but the source topic has {wanted}; "
            "delete the topic at the target, or leave it out with --exclude"
        )
    if len(there.partitions) < wanted:
        refused = target.create_partitions({there.name: wanted})[there.name]
        if refused is not None:
            raise explained("target", refused)


def _set(target: Admin, name: str, wanted: Mapping[str, str]) -> None:
    resource = ConfigResource(ResourceType.TOPIC, name)
    found = target.describe_configs([resource])[resource]
    if isinstance(found, KafkaError):
        raise explained("target", found)
    changed = {key: value for key, value in wanted.items() if key not in found or found[key].value != value}
    if not changed:
        return
    try:
        target.alter_configs(resource, set=changed)
    except KafkaError as error:
        raise MirrorError(
            f"target: topic {name!r} does not accept {', '.join(f'{k}={v}' for k, v in changed.items())}: "
            f"{error.message} ({error.code.name}); leave the topic out with --exclude"
        ) from error


def refuse_own_source(source: Admin, target: Admin) -> None:
    """Raise MirrorError if both addresses belong to the same cluster. Such a mirror would copy its copies forever."""
    from_cluster, to_cluster = source.describe_cluster(), target.describe_cluster()
    same_id = from_cluster.cluster_id is not None and from_cluster.cluster_id == to_cluster.cluster_id
    addresses = [{(broker.host, broker.port) for broker in each.brokers} for each in (from_cluster, to_cluster)]
    if same_id or addresses[0] & addresses[1]:
        what = f"cluster id {from_cluster.cluster_id}" if same_id else "a broker is the same"
        raise MirrorError(f"source and target are the same cluster ({what}); name two different clusters")
