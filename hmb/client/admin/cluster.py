"""The methods of `Admin` for brokers: addresses, API versions, data directories, and elections of leaders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from hmb.client.admin.brokers import Brokers, by_topic
from hmb.client.arguments import list_of, list_of_partitions
from hmb.client.connection import SOFTWARE
from hmb.client.errors import response_error
from hmb.client.metadata import Node
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.api_versions import ApiVersionsRequest
from hmb.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from hmb.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from hmb.protocol.topics import TopicPartition

Directory = DescribeLogDirsResponse.DescribeLogDirsResult
FIRST_VERSION_OF_UNCLEAN_ELECTIONS = ElectLeadersRequest.first_version("election_type")


class BrokerDescription(NamedTuple):
    """A broker: its id, its address, and its rack. `rack` is None if the broker has no rack."""

    broker_id: int
    host: str
    port: int
    rack: str | None


class ClusterDescription(NamedTuple):
    """A cluster: its id, its controller and its brokers.

    With KRaft, the controller can be a separate process, which is no broker. `controller_id` is then the id of one
    of the brokers, because each broker forwards requests to the controller. With brokers older than Kafka 0.10,
    `controller_id` is -1. With brokers older than Kafka 0.10.1, `cluster_id` is None.
    """

    cluster_id: str | None
    controller_id: int
    brokers: tuple[BrokerDescription, ...]


class ReplicaDescription(NamedTuple):
    """A replica of a partition in a data directory.

    `size` is in bytes. `offset_lag` is the number of offsets that the replica still has to copy from the leader.

    `is_future` is True while the broker moves the replica from another data directory into this one.
    """

    size: int
    offset_lag: int
    is_future: bool


class LogDirDescription(NamedTuple):
    """A data directory of a broker.

    `total_bytes` is the size of the disk that contains the directory. `usable_bytes` is the free space on this disk.
    Both sizes are -1 if the broker is older than Kafka 3.3.
    """

    path: str
    error: KafkaError | None
    total_bytes: int
    usable_bytes: int
    replicas: Mapping[TopicPartition, ReplicaDescription]


class BrokerVersions(NamedTuple):
    """The APIs of a broker, and the features of its cluster.

    `apis` maps an API key to the range of versions that the broker supports. `features` maps the name of a feature
    to the level that the cluster uses.
    """

    apis: Mapping[int, range]
    features: Mapping[str, int]


def describe_cluster(brokers: Brokers) -> ClusterDescription:
    """Return the cluster's id, its controller and its brokers."""
    response = brokers.retrying(lambda: brokers.cluster.metadata(()))
    described = sorted(BrokerDescription(it.node_id, it.host, it.port, it.rack) for it in response.brokers)
    return ClusterDescription(response.cluster_id, response.controller_id, tuple(described))


def describe_versions(brokers: Brokers) -> dict[Node, BrokerVersions]:
    """Return the versions that each broker supports for each API.

    Brokers before Kafka 0.10 cannot report their versions. If such a broker answers a ListGroups request, the
    method returns the versions of Kafka 0.9. Otherwise, it returns the versions of Kafka 0.8.2.
    """
    described = {}
    for node in brokers.nodes():
        connection = brokers.connection(node)
        features: dict[str, int] = {}
        if connection.supports(ApiVersionsRequest):
            response = connection.send(SOFTWARE)
            features = {it.name: it.max_version_level for it in response.finalized_features}
        described[node] = BrokerVersions(connection.versions, features)
    return described


def describe_log_dirs(
    all_brokers: Brokers, brokers: Iterable[int] | None = None
) -> dict[int, tuple[LogDirDescription, ...]]:
    """Return the data directories of each broker: `{broker id: directories}`. Needs Kafka 1.0.

    `brokers` contains broker ids, or is None for all brokers.
    """
    wanted = None if brokers is None else list_of("brokers", brokers, int, "[0, 1]")
    all_brokers.nodes()
    described = {}
    for number in sorted(all_brokers.cluster.nodes) if wanted is None else wanted:
        response: DescribeLogDirsResponse = all_brokers.broker(number).send(DescribeLogDirsRequest(topics=None))
        if response.error_code:
            raise response_error(f"broker {number}", response.error_code)
        described[number] = tuple(map(_directory, response.results))
    return described


def elect_leaders(
    brokers: Brokers, partitions: Iterable[TopicPartition] | None = None, *, unclean: bool = False
) -> dict[TopicPartition, KafkaError | None]:
    """Ask the controller to elect the leaders of partitions. `partitions=None` means all partitions.

    If `unclean` is false, the preferred replica of each partition becomes the leader. If `unclean` is true, the
    controller elects a leader only for partitions without a live in-sync replica. A replica that is not in sync
    then becomes the leader, and records may be lost.

    The result of a partition is None if its election succeeded or was not needed, and otherwise a KafkaError. The
    method needs Kafka 2.2. With `unclean`, it needs Kafka 2.4.
    """
    wanted = None if partitions is None else list_of_partitions(partitions)
    version = brokers.cluster.version_of(ElectLeadersRequest)
    if unclean and version < FIRST_VERSION_OF_UNCLEAN_ELECTIONS:
        why = "a client can request unclean elections only from a broker of Kafka 2.4 or newer"
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, why)
    asked = ElectLeadersRequest.TopicPartitions
    request = ElectLeadersRequest(
        election_type=int(unclean),
        topic_partitions=None
        if wanted is None
        else [asked(topic=topic, partitions=numbers) for topic, numbers in by_topic(wanted).items()],
        timeout_ms=brokers.timeout_ms,
    )
    response: ElectLeadersResponse = brokers.cluster.send_to_controller(request, version)
    if response.error_code:
        raise response_error("election", response.error_code)
    elected: dict[TopicPartition, KafkaError | None] = {}
    for topic in response.replica_election_results:
        for result in topic.partition_result:
            partition = TopicPartition(topic.topic, result.partition_id)
            brokers.cluster.forget(topic.topic)
            needed = result.error_code not in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)
            elected[partition] = (
                response_error(partition, result.error_code, result.error_message) if needed else None
            )
    return elected


def _directory(result: Directory) -> LogDirDescription:
    replicas = {
        TopicPartition(topic.name, it.partition_index): ReplicaDescription(
            it.partition_size, it.offset_lag, it.is_future_key
        )
        for topic in result.topics
        for it in topic.partitions
    }
    error = response_error(result.log_dir, result.error_code) if result.error_code else None
    return LogDirDescription(result.log_dir, error, result.total_bytes, result.usable_bytes, replicas)
