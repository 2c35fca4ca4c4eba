"""Tests of a simulated cluster: real clients find the new leader of a partition, and lose no record."""

from __future__ import annotations

from collections.abc import Callable

import confluent_kafka
import kafka
import pytest

import hmb
from hmb.client.connection import Connection
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.heartbeat import HeartbeatRequest
from hmb.protocol.messages.list_offsets import ListOffsetsRequest
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.testing import SimulatedCluster

COUNT = 60  # the number of records that a test sends
VALUES = [b"%d" % number for number in range(COUNT)]


def test_the_short_name_of_the_class_works() -> None:
    assert hmb.testing.Cluster is SimulatedCluster


def connect(cluster: SimulatedCluster, node: int) -> Connection:
    host, _, port = cluster.bootstrap_servers.split(",")[node].rpartition(":")
    return Connection(host, int(port))


def listed(cluster: SimulatedCluster, node: int) -> tuple[list[int], dict[int, int]]:
    """Send a Metadata request to a node. Return the nodes, and the leader of each partition of "events"."""
    with connect(cluster, node) as connection:
        answer = connection.send(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="events")]))
    leaders = {each.partition_index: each.leader_id for each in answer.topics[0].partitions}
    return [each.node_id for each in answer.brokers], leaders


def test_each_node_lists_three_nodes_and_the_leaders() -> None:
    with SimulatedCluster(3) as cluster:
        cluster.broker.create_topic("events", 3)
        for node in range(3):
            assert listed(cluster, node) == ([0, 1, 2], {0: 0, 1: 1, 2: 2})
        cluster.move_leader("events", 0, 2)
        assert listed(cluster, 1) == ([0, 1, 2], {0: 2, 1: 1, 2: 2})
        cluster.stop(2)
        nodes, leaders = listed(cluster, 1)
        assert nodes == [0, 1]
        assert 2 not in leaders.values()
        cluster.start(2)
        assert listed(cluster, 0) == ([0, 1, 2], {0: 2, 1: 1, 2: 2})


def test_a_node_refuses_the_partitions_that_it_does_not_lead() -> None:
    topics = ListOffsetsRequest.ListOffsetsTopic
    wanted = [topics.ListOffsetsPartition(partition_index=number, timestamp=-1) for number in range(2)]
    with SimulatedCluster(3) as cluster:
        cluster.broker.create_topic("events", 2)
        with connect(cluster, 1) as connection:
            answer = connection.send(ListOffsetsRequest(topics=[topics(name="events", partitions=wanted)]))
    codes = {each.partition_index: each.error_code for each in answer.topics[0].partitions}
    assert codes == {0: ErrorCode.NOT_LEADER_OR_FOLLOWER, 1: ErrorCode.NONE}


def test_one_node_coordinates_a_group() -> None:
    with SimulatedCluster(3) as cluster:
        for coordinator in (0, 1):
            with connect(cluster, 2) as connection:
                found = connection.send(FindCoordinatorRequest(coordinator_keys=["g"]))
                assert [each.node_id for each in found.coordinators] == [coordinator]
                refused = connection.send(HeartbeatRequest(group_id="g", member_id="m"))
                assert refused.error_code == ErrorCode.NOT_COORDINATOR
            with connect(cluster, coordinator) as connection:
                answered = connection.send(HeartbeatRequest(group_id="g", member_id="m"))
                assert answered.error_code == ErrorCode.UNKNOWN_MEMBER_ID
            cluster.stop(0)


def with_hmb(servers: str, on_sent: Callable[[int], None]) -> list[bytes | None]:
    with hmb.Producer(servers) as producer:
        for number, value in enumerate(VALUES):
            on_sent(number)
            producer.send("events", value).result()
    with hmb.Consumer(servers, "events", group="g", offset="earliest") as consumer:
        on_sent(COUNT)
        records = iter(consumer)
        return [next(records).value for _ in VALUES]


def with_confluent_kafka(servers: str, on_sent: Callable[[int], None]) -> list[bytes | None]:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "linger.ms": 0})
    for number, value in enumerate(VALUES):
        on_sent(number)
        producer.produce("events", value, partition=0)
        assert producer.flush(30) == 0
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["events"])
    read = [each.value() for each in consumer.consume(COUNT // 2, timeout=30)]
    on_sent(COUNT)
    read += [each.value() for each in consumer.consume(COUNT - COUNT // 2, timeout=30)]
    consumer.close()
    return read


def with_kafka_python(servers: str, on_sent: Callable[[int], None]) -> list[bytes | None]:
    producer = kafka.KafkaProducer(bootstrap_servers=servers.split(","))
    for number, value in enumerate(VALUES):
        on_sent(number)
        producer.send("events", value, partition=0).get(30)
    producer.close()
    consumer = kafka.KafkaConsumer(
        "events", bootstrap_servers=servers.split(","), group_id="g", auto_offset_reset="earliest"
    )
    on_sent(COUNT)
    read = [next(consumer).value for _ in VALUES]
    consumer.close()
    return read


@pytest.mark.parametrize("client", [with_hmb, with_confluent_kafka, with_kafka_python])
def test_clients_lose_nothing_when_leaders_move_and_a_node_stops(
    client: Callable[[str, Callable[[int], None]], list[bytes | None]],
) -> None:
    with SimulatedCluster(3) as cluster:
        cluster.broker.create_topic("events")
        changes: dict[int, Callable[[], None]] = {
            20: lambda: cluster.move_leader("events", 0, 2),
            40: lambda: cluster.stop(2),
            COUNT: lambda: cluster.move_leader("events", 0, 1),
        }

        def change(number: int) -> None:
            changes.get(number, lambda: None)()

        assert client(cluster.bootstrap_servers, change) == VALUES
        assert [each.value for each in cluster.broker.records("events")] == VALUES


def test_a_wrong_node_is_one_clear_line() -> None:
    with SimulatedCluster(3) as cluster:
        cluster.broker.create_topic("events")
        with pytest.raises(ValueError, match="no node 3; its nodes are 0 to 2"):
            cluster.stop(3)
        cluster.stop(1)
        with pytest.raises(ValueError, match="node 1 is stopped"):
            cluster.move_leader("events", 0, 1)
    with pytest.raises(ValueError, match="at least one node"):
        SimulatedCluster(0)


def test_a_leader_of_a_partition_that_does_not_exist_is_refused() -> None:
    with SimulatedCluster(2) as cluster:
        cluster.broker.create_topic("events", 2)
        with pytest.raises(hmb.KafkaError, match="'events' has no partition 2; its partitions are 0 to 1"):
            cluster.move_leader("events", 2, node=0)
        with pytest.raises(hmb.KafkaError, match="there is no topic 'other'"):
            cluster.move_leader("other", 0, node=0)


def test_a_consumer_of_a_group_goes_on_when_its_nodes_stop() -> None:
    """Node 0 is the group's coordinator and the partition's leader.

    After node 0 stops, the consumer still gets each record once.
    """
    with SimulatedCluster(3) as cluster:
        cluster.broker.create_topic("events")
        cluster.broker.produce("events", *VALUES[:20])
        with hmb.Consumer(cluster.bootstrap_servers, "events", group="g", offset="earliest") as consumer:
            records = iter(consumer)
            read = [next(records).value for _ in range(20)]
            consumer.commit()
            cluster.stop(0)
            cluster.broker.produce("events", *VALUES[20:40])
            read += [next(records).value for _ in range(20)]
            cluster.start(0)
            cluster.stop(1)
            cluster.broker.produce("events", *VALUES[40:])
            read += [next(records).value for _ in range(20)]
            consumer.commit()
        assert read == VALUES
        assert set(cluster.broker.committed("g").values()) == {COUNT}
