"""Kills one of two brokers of a Kafka cluster. HMB's client must find the new leaders and the new coordinator."""

from __future__ import annotations

import json
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Literal

import pytest
from click.testing import CliRunner

import hmb
from hmb.cli.main import main
from hmb.client import Cluster, TopicPartition
from hmb.client.admin import Admin, NewTopic, raised
from hmb.client.producing.delivery import Delivery
from tests.conformance.kafka_cluster import KafkaCluster
from tests.waiting import until

pytestmark = [pytest.mark.external, pytest.mark.slow]

PARTITIONS = [TopicPartition("t", number) for number in range(4)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, kafka_43: Path) -> Iterator[KafkaCluster]:
    with KafkaCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        with Admin(cluster.bootstrap) as admin:
            placed = {0: [1, 2], 1: [2, 1], 2: [1, 2], 3: [2, 1]}
            raised(admin.create_topics([NewTopic("t", assignments=placed)])["t"])
        # Only one broker received the CreateTopics request. The other broker gets the metadata later.
        for server in cluster.bootstrap.split(","):
            until(partial(knows_topic, server), "every broker to know the topic")
        yield cluster


def knows_topic(server: str) -> bool:
    with closing(Cluster(server)) as cluster:
        return "t" in [topic.name for topic in cluster.topics()]


class Reading(threading.Thread):
    """A thread that runs the only member of a group.

    The thread stores the values of the records whose key is the group's name. It ends after it has read the value
    "last" from every partition.
    """

    def __init__(self, servers: str, group: str, protocol: Literal["classic", "consumer"]) -> None:
        super().__init__(daemon=True)
        self.values: list[bytes] = []
        self.error: hmb.HmbError | None = None
        self._group = group.encode()
        self._consumer = hmb.Consumer(servers, "t", group=group, group_protocol=protocol)

    def run(self) -> None:
        try:
            self._read()
        except hmb.HmbError as error:
            self.error = error

    def where(self) -> str:
        """Return the lines of code that the thread executes now. The report of a failed test contains them."""
        frame = sys._current_frames().get(self.ident or 0)
        return "".join(traceback.format_stack(frame)) if frame is not None else "the thread has ended"

    def _read(self) -> None:
        ended = set()
        while len(ended) < len(PARTITIONS):
            for record in self._consumer.poll(0.5):
                if record.key == self._group:
                    self.values.append(record.value)
                    if record.value == b"last":
                        ended.add(record.partition)
        self._consumer.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("victim", [1, 2])
def test_a_broker_dies_and_restarts(
    cluster: KafkaCluster, protocol: Literal["classic", "consumer"], victim: int
) -> None:
    group = f"{protocol}-{victim}"
    reading = Reading(cluster.bootstrap, group, protocol)
    reading.start()
    deliveries: list[Delivery] = []
    other = 3 - victim
    with hmb.Producer(cluster.bootstrap) as producer, Admin(cluster.bootstrap) as admin:

        def send(count: int) -> None:
            for number in range(len(deliveries), len(deliveries) + count):
                partition = number % len(PARTITIONS)
                deliveries.append(producer.send("t", b"%d" % number, group.encode(), partition))

        send(1000)
        producer.flush()
        until(lambda: bool(reading.values), "the group to be there")
        cluster.brokers[victim].kill()
        send(1000)
        producer.flush()
        check_that_one_broker_leads(cluster, admin, group, other)
        ends = admin.list_offsets(dict.fromkeys(PARTITIONS, "latest"))
        assert sum(raised(end).offset for end in ends.values()) >= 2000
        cluster.brokers[victim].start()
        send(1000)
        for partition in range(len(PARTITIONS)):
            producer.send("t", b"last", group.encode(), partition)
        producer.flush()
        assert [delivery.exception() for delivery in deliveries] == [None] * 3000
        reading.join(60)
        assert reading.error is None
        assert not reading.is_alive(), f"{len(reading.values)} values after 60 s; the member is at\n{reading.where()}"
        sent = [b"%d" % number for number in range(3000)] + [b"last"] * len(PARTITIONS)
        assert sorted(reading.values) == sorted(sent)  # The consumer has read each value exactly once.
        in_sync(admin)
        elected = admin.elect_leaders(PARTITIONS)
        assert set(elected.values()) == {None}


def check_that_one_broker_leads(cluster: KafkaCluster, admin: Admin, group: str, leader: int) -> None:
    """Check that the broker `leader` leads all partitions and coordinates the group after the other broker has died."""
    described = raised(admin.describe_topics(["t"])["t"])
    assert {it.leader for it in described.partitions} == {leader}
    assert all(it.is_under_replicated for it in described.partitions)
    assert described_by_command(cluster) == [0, 1, 2, 3]
    described_group = raised(admin.describe_groups([group])[group])
    assert described_group.coordinator.port == cluster.brokers[leader].port


def described_by_command(cluster: KafkaCluster) -> list[int]:
    """Return the partitions that have a replica out of sync, as `hmb topics` reports them."""
    arguments = ["topics", "describe", "t", "--under-replicated-partitions", "--json", "-b", cluster.bootstrap]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return [partition["partition"] for partition in json.loads(result.stdout)["partitions"]]


def in_sync(admin: Admin) -> None:
    """Wait until both brokers have all records. Then the test may kill either broker."""
    while any(it.is_under_replicated for it in raised(admin.describe_topics(["t"])["t"]).partitions):
        pass
