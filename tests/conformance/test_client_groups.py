"""Runs the group tests of HMB's client against Kafka 4.3.0, and some of them against Kafka 0.8.2.2."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hmb
from hmb.bench import peers
from hmb.client import TopicPartition
from hmb.client.group.interface import OffsetAndMetadata
from hmb.protocol.errors import KafkaError
from tests.client.group.members import GROUP_CONFIG

TESTS = Path(__file__).parents[1] / "client"

pytestmark = [pytest.mark.external, pytest.mark.slow, pytest.mark.timeout(600)]


NAMES = ["group/test_membership.py", "group/test_brokers.py", "consuming/test_group_reading.py"]


@pytest.mark.parametrize("name", NAMES)
def test_groups_are_the_same_with_kafka(kafka_43: Path, name: str) -> None:
    with peers.Kafka43(config=GROUP_CONFIG) as kafka:
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(TESTS / name)],
            env={**os.environ, "HMB_TEST_SERVERS": kafka.bootstrap},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    assert run.returncode == 0, run.stdout


def test_kafka_0_8_2_stores_offsets_but_has_no_group_members(kafka_082: Path) -> None:
    with peers.Kafka082() as kafka:
        with hmb.Producer(kafka.bootstrap) as producer:
            for number in range(10):
                producer.send("t", b"%d" % number, partition=0).result()
        partition = TopicPartition("t", 0)
        with hmb.Consumer(kafka.bootstrap, group="g") as consumer:
            consumer.assign([partition])
            assert consumer.committed(partition) == {partition: None}
            assert [record.value for record in consumer.poll(30, 4)] == [b"0", b"1", b"2", b"3"]
            heard: list[Exception | None] = []
            consumer.commit_async(callback=lambda _, error: heard.append(error))
        assert heard == [None]
        with hmb.Consumer(kafka.bootstrap, group="g") as consumer:
            consumer.assign([partition])
            assert consumer.committed(partition) == {partition: OffsetAndMetadata(4)}
            assert [record.value for record in consumer.poll(30)] == [b"%d" % number for number in range(4, 10)]
        what_to_do = r"members of groups need Kafka 0\.9: assign\(\) partitions by hand"
        with hmb.Consumer(kafka.bootstrap, "t", group="g") as member, pytest.raises(KafkaError, match=what_to_do):
            member.poll(30)
