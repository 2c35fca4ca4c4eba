"""Contains the methods of `Admin` that create, list, describe and delete topics, and add partitions to topics.

The controller creates and deletes topics. The other brokers learn about a new topic some milliseconds later. Until
then, these brokers respond that the topic does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from hmb.client.admin.brokers import Brokers
from hmb.client.arguments import list_of, list_of_names, mapped
from hmb.client.metadata import TopicMetadata, topic_error
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from hmb.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from hmb.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from hmb.protocol.messages.metadata import MetadataResponse

Creatable = CreateTopicsRequest.CreatableTopic
FIRST_DELETE_TOPICS_VERSION_OF_IDS = DeleteTopicsRequest.first_version("topics")
NEW_TOPICS = '["a", NewTopic("b", partitions=3)]'


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create.

    If `partitions` is -1, the broker uses its setting num.partitions. If `replication_factor` is -1, the broker uses
    its setting default.replication.factor.

    `assignments` maps each partition number to the ids of the brokers that will store the partition. The first broker
    is the preferred leader. If `assignments` is not empty, `partitions` and `replication_factor` are ignored.
    """

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)
    assignments: Mapping[int, list[int]] = field(default_factory=dict)


class CreatedTopic(NamedTuple):
    """A topic that was created.

    Brokers before Kafka 2.4 do not return how many partitions and replicas a new topic has: `partitions` and
    `replication_factor` are then -1. Brokers before Kafka 2.8 have no topic ids: `topic_id` is then the zero UUID.
    """

    name: str
    topic_id: UUID
    partitions: int
    replication_factor: int


class PartitionDescription(NamedTuple):
    """A partition of a topic. `leader` is the broker id of the leader, or -1 if the partition has no leader.

    `replicas` contains the broker ids of all replicas, and `isr` contains the broker ids of the in-sync replicas.
    `offline` contains the broker ids of replicas whose broker or disk is not available.
    """

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)


class TopicDescription(NamedTuple):
    """A topic, with its partitions in the order of their numbers."""

    name: str
    topic_id: UUID
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]


def create_topics(
    brokers: Brokers, topics: Iterable[NewTopic | str], *, validate_only: bool = False
) -> dict[str, CreatedTopic | KafkaError]:
    """Create topics. If `validate_only` is true, the broker checks the request, but creates no topics.

    Needs Kafka 0.10.1. Brokers before Kafka 2.4 have no default number of partitions or replicas, so the caller
    must pass both numbers.
    """
    if isinstance(topics, Mapping):  # `list_of` would use only the keys.
        raise TypeError(f"topics to create must be a list, for example {NEW_TOPICS}, not {topics!r}")
    given = list_of("topics to create", topics, (NewTopic, str), NEW_TOPICS)
    wanted = [NewTopic(topic) if isinstance(topic, str) else topic for topic in given]
    version = brokers.cluster.version_of(CreateTopicsRequest)
    if version < CreateTopicsRequest.FIRST_VERSION_OF_DEFAULTS:
        for topic in wanted:
            _check_numbers(topic)
    request = CreateTopicsRequest(
        topics=[_creatable(topic) for topic in wanted], timeout_ms=brokers.timeout_ms, validate_only=validate_only
    )
    response: CreateTopicsResponse = brokers.cluster.send_to_controller(request)
    return {
        result.name: topic_error(result.name, result.error_code, result.error_message)
        if result.error_code
        else CreatedTopic(result.name, result.topic_id, result.num_partitions, result.replication_factor)
        for result in response.topics
    }


def delete_topics(brokers: Brokers, names: Iterable[str]) -> dict[str, KafkaError | None]:
    """Delete topics and their records. The result contains None for each deleted topic. Needs Kafka 0.10.1."""
    wanted = list_of_names("topics to delete", names)
    request = DeleteTopicsRequest(timeout_ms=brokers.timeout_ms)
    version = brokers.cluster.version_of(DeleteTopicsRequest)
    if version >= FIRST_DELETE_TOPICS_VERSION_OF_IDS:
        request.topics = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in wanted]
    else:
        request.topic_names = wanted
    response: DeleteTopicsResponse = brokers.cluster.send_to_controller(request, version)
    return {
        result.name or "": topic_error(result.name or "", result.error_code, result.error_message)
        if result.error_code
        else None
        for result in response.responses
    }


def list_topics(brokers: Brokers, *, internal: bool = False) -> list[TopicMetadata]:
    """Return all topics, sorted by name.

    If `internal` is true, the list also contains Kafka's own topics, which store offsets and transactions.
    """
    return [topic for topic in brokers.retrying(brokers.cluster.topics) if internal or not topic.is_internal]


def describe_topics(
    brokers: Brokers, names: Iterable[str] | None = None
) -> dict[str, TopicDescription | KafkaError]:
    """Return topics with the leaders and replicas of their partitions. `names=None` means all topics."""
    wanted = None if names is None else list_of_names("topics to describe", names)
    response = brokers.retrying(lambda: brokers.cluster.metadata(wanted))
    described = {topic.name or "": _description(topic) for topic in response.topics}
    if wanted is None:
        return described
    return {name: described.get(name) or topic_error(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for name in wanted}


def create_partitions(
    brokers: Brokers, counts: Mapping[str, int], *, validate_only: bool = False
) -> dict[str, KafkaError | None]:
    """Add partitions to topics. `counts` contains the new total number of partitions of each topic.

    The result contains None for each topic that was changed. The existing records stay in their partitions. But a
    key may now belong to another partition. A new record then goes to a different partition than the older records
    with the same key. Needs Kafka 1.0.
    """
    topics = [
        CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=count, assignments=None)
        for name, count in mapped("numbers of partitions", counts, '{"t": 6}').items()
    ]
    request = CreatePartitionsRequest(topics=topics, timeout_ms=brokers.timeout_ms, validate_only=validate_only)
    response: CreatePartitionsResponse = brokers.cluster.send_to_controller(request)
    for name in counts:
        brokers.cluster.forget(name)
    return {
        result.name: topic_error(result.name, result.error_code, result.error_message)
        if result.error_code
        else None
        for result in response.results
    }


def _check_numbers(topic: NewTopic) -> None:
    if not topic.assignments and -1 in (topic.partitions, topic.replication_factor):
        what = "the broker is older than Kafka 2.4 and has no defaults: give partitions and replication factor"
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"topic {topic.name!r}: {what}")


def _creatable(topic: NewTopic) -> Creatable:
    return Creatable(
        name=topic.name,
        num_partitions=-1 if topic.assignments else topic.partitions,
        replication_factor=-1 if topic.assignments else topic.replication_factor,
        assignments=[
            Creatable.CreatableReplicaAssignment(partition_index=number, broker_ids=brokers)
            for number, brokers in topic.assignments.items()
        ],
        configs=[Creatable.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )


def _description(topic: MetadataResponse.MetadataResponseTopic) -> TopicDescription | KafkaError:
    name = topic.name or ""
    if topic.error_code:
        return topic_error(name, topic.error_code)
    partitions = sorted(
        PartitionDescription(
            it.partition_index,
            it.leader_id,
            it.leader_epoch,
            tuple(it.replica_nodes),
            tuple(it.isr_nodes),
            tuple(it.offline_replicas),
        )
        for it in topic.partitions
    )
    return TopicDescription(name, topic.topic_id, topic.is_internal, tuple(partitions))
