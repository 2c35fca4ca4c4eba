"""Kafka 4.3.0 writes committed offsets to a data directory. HMB opens this directory, and then Kafka opens it again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from hmb.bench import peers
from hmb.client import Connection
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.describe_groups import DescribeGroupsRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.offset_commit import OffsetCommitRequest
from hmb.protocol.messages.offset_delete import OffsetDeleteRequest
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest

pytestmark = pytest.mark.external

SECONDS = 30.0
GROUPS = [*(f"plain-{number}" for number in range(20)), "consumer", "transactions", "aborted", "deleted"]
# (group, topic, partition) -> (offset, leader epoch, metadata)
Offsets = dict[tuple[str, str, int], tuple[int, int, str]]


def await_coordinator(connection: Connection) -> None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        found = connection.send(FindCoordinatorRequest(coordinator_keys=GROUPS), 4).coordinators
        if not any(each.error_code for each in found) and not any(each.error_code for each in fetch(connection)):
            return
        time.sleep(0.1)
    raise AssertionError("no coordinator")


def fetch(connection: Connection) -> list[Any]:
    wanted = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=name, topics=None) for name in GROUPS]
    groups: list[Any] = connection.send(OffsetFetchRequest(groups=wanted), 9).groups
    return groups


def offsets(connection: Connection) -> Offsets:
    return {
        (group.group_id, topic.name, p.partition_index): (p.committed_offset, p.committed_leader_epoch, p.metadata)
        for group in fetch(connection)
        for topic in group.topics
        for p in topic.partitions
    }


def commit(connection: Connection, group: str, partitions: dict[int, int], version: int = 9, **fields: Any) -> None:
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    wanted = [
        topic.OffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_leader_epoch=2, committed_metadata=f"ü {offset}"
        )
        for index, offset in partitions.items()
    ]
    request = OffsetCommitRequest(
        group_id=group, generation_id_or_member_epoch=-1, topics=[topic(name="t", partitions=wanted)], **fields
    )
    answers = connection.send(request, version).topics[0].partitions
    assert not any(each.error_code for each in answers)


def delete(connection: Connection, group: str, *partitions: int) -> None:
    topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
    wanted = [topic.OffsetDeleteRequestPartition(partition_index=index) for index in partitions]
    answer = connection.send(OffsetDeleteRequest(group_id=group, topics=[topic(name="t", partitions=wanted)]))
    assert answer.error_code == 0


def states(connection: Connection) -> dict[str, tuple[str, str]]:
    described = connection.send(DescribeGroupsRequest(groups=GROUPS), 5).groups
    return {group.group_id: (group.group_state, group.protocol_type) for group in described}


def consume(bootstrap: str) -> None:
    """Run a group with one member, which commits offsets and then leaves the group."""
    config = {"bootstrap.servers": bootstrap, "group.id": "consumer", "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer({**config, "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    deadline = time.monotonic() + SECONDS
    while not consumer.assignment() and time.monotonic() < deadline:
        consumer.poll(0.1)
    partitions = [confluent_kafka.TopicPartition("t", index, 10 + index) for index in range(3)]
    consumer.commit(offsets=partitions, asynchronous=False)
    consumer.close()


def commit_in_transactions(bootstrap: str) -> None:
    """Send the offsets of two groups in transactions.

    The transactions of the group `transactions` are committed, and those of the group `aborted` are aborted.
    """
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "any"})
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": "offsets"})
    producer.init_transactions(SECONDS)
    for group in ("transactions", "aborted"):
        for offset in (5, 6):
            producer.begin_transaction()
            partition = confluent_kafka.TopicPartition("t", 0, offset)
            metadata = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
            producer.send_offsets_to_transaction([partition], metadata.consumer_group_metadata(), SECONDS)
            metadata.close()
            (producer.commit_transaction if group == "transactions" else producer.abort_transaction)(SECONDS)
    consumer.close()


def fill(broker: peers.Peer) -> Offsets:
    with Connection(peers.HOST, broker.port) as connection:
        topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=3, replication_factor=1)
        connection.send(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
        await_coordinator(connection)
        for number in range(20):
            for offset in range(5):
                commit(connection, f"plain-{number}", {0: offset, number % 3: 7 * offset})
        commit(connection, "plain-3", {1: 33}, 2, retention_time_ms=10_000_000)
        commit(connection, "aborted", {0: 1})
        commit(connection, "deleted", {0: 1, 1: 2})
        delete(connection, "deleted", 0)
        consume(broker.bootstrap)
        commit_in_transactions(broker.bootstrap)
        return offsets(connection)


def test_offsets_move_from_kafka_to_hmb_and_back(kafka_43: Path, tmp_path: Path) -> None:
    directory = tmp_path / "data-dir"
    with peers.Kafka43(directory) as kafka:
        of_kafka = fill(kafka)
        with Connection(peers.HOST, kafka.port) as connection:
            groups = states(connection)
    assert of_kafka["transactions", "t", 0][0] == 6 and of_kafka["aborted", "t", 0][0] == 1
    assert len(of_kafka) > 30 and ("deleted", "t", 0) not in of_kafka
    with peers.Hmb(directory) as hmb, Connection(peers.HOST, hmb.port) as connection:
        await_coordinator(connection)
        assert offsets(connection) == of_kafka
        assert states(connection) == groups
        commit(connection, "plain-5", {0: 100, 2: 200})
        commit(connection, "plain-6", {1: 300}, 2, retention_time_ms=10_000_000)
        delete(connection, "plain-7", 0, 1, 2)
        consume(hmb.bootstrap)
        of_hmb = offsets(connection)
        groups = states(connection)
    assert len(of_kafka.keys() - of_hmb.keys()) == 2 and of_hmb["plain-5", "t", 2][0] == 200
    with peers.Kafka43(directory) as kafka, Connection(peers.HOST, kafka.port) as connection:
        await_coordinator(connection)
        assert offsets(connection) == of_hmb
        assert states(connection) == groups
