"""MirrorMaker 2 of Kafka 4.3.0 copies a topic and a group from one HMB to another one (KIP-382).

MirrorMaker 2 is a cluster of Kafka Connect with three connectors. They copy the records and the settings of topics,
write the translated offsets of groups to a topic of checkpoints, and write heartbeats.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import hmb
from hmb.bench import peers
from hmb.bench.peers.broker_process import write_properties
from hmb.client.admin import ConfigResource, ResourceType
from hmb.mirror.mirror_maker import heartbeat
from hmb.mirror.names import Aliases
from tests.conformance.ecosystem.service import WARNINGS_TO_LOG, Service, connect_jars
from tests.conformance.java_clients import QUICK_START
from tests.mirror.conftest import contents
from tests.waiting import until

pytestmark = [pytest.mark.external, pytest.mark.slow]

MAIN_CLASS = "org.apache.kafka.connect.mirror.MirrorMaker"
CHECKPOINTS = Path(__file__).parents[1] / "Checkpoints.java"
ONE_REPLICA = (
    *("", "checkpoints.topic.", "heartbeats.topic.", "offset-syncs.topic."),
    *("offset.storage.", "status.storage.", "config.storage."),
)
SETTINGS = {
    "clusters": "east,west",
    "east->west.enabled": "true",
    "east->west.topics": "orders",
    "west->east.enabled": "false",
    "sync.group.offsets.enabled": "true",
    "sync.topic.acls.enabled": "false",
    "offset.lag.max": "0",  # Store each pair of offsets, so that the translation is exact.
    "emit.heartbeats.interval.seconds": "1",
    "emit.checkpoints.interval.seconds": "1",
    "sync.group.offsets.interval.seconds": "1",
    "refresh.groups.interval.seconds": "2",
    "refresh.topics.interval.seconds": "2",
    "plugin.discovery": "service_load",
    **{f"{prefix}replication.factor": "1" for prefix in ONE_REPLICA},
    **{f"{prefix}partitions": "1" for prefix in ("offset.storage.", "status.storage.")},
}


@pytest.mark.timeout(400)
def test_topics_checkpoints_and_heartbeats_arrive(tmp_path: Path) -> None:
    quick = {"group.initial.rebalance.delay.ms": "0"}
    partition, copy = hmb.TopicPartition("orders", 1), hmb.TopicPartition("east.orders", 1)
    with (
        hmb.Broker(config=quick) as east,
        hmb.Broker(config=quick) as west,
        Service(tmp_path / "log") as mirror_maker,
    ):
        east.create_topic("orders", partitions=2, config={"retention.ms": "77000000"})
        for number in (0, 1):
            east.produce("orders", *map(str, range(20)), partition=number)
        with hmb.Admin(east.bootstrap_servers) as admin:
            admin.alter_group_offsets("billing", {partition: 20})
        clusters = {f"{name}.bootstrap.servers": it.bootstrap_servers for name, it in (("east", east), ("west", west))}
        write_properties(tmp_path / "mm2.properties", SETTINGS | clusters)
        options = [*QUICK_START, WARNINGS_TO_LOG]
        mirror_maker.start(peers.java(connect_jars(), MAIN_CLASS, str(tmp_path / "mm2.properties"), options=options))

        def has_records(topic: str, count: int) -> bool:
            return topic in west.topics() and len(west.records(topic)) >= count

        until(lambda: has_records("east.orders", 40), "the copy", seconds=90, pause=0.1)
        until(lambda: has_records("east.heartbeats", 1), "heartbeats", seconds=60, pause=0.1)
        until(lambda: west.committed("billing").get(copy) == 20, "the offset of the group", seconds=60, pause=0.1)
        assert contents(west, "east.orders") == contents(east, "orders")
        with hmb.Admin(west.bootstrap_servers) as admin:
            topic = ConfigResource(ResourceType.TOPIC, "east.orders")
            entries = admin.describe_configs([topic])[topic]
        assert not isinstance(entries, hmb.KafkaError)
        assert entries["retention.ms"].value == "77000000"
        assert west.records("east.heartbeats")[0].key == heartbeat(Aliases("east", "west"), 0).key
        program = peers.java(
            connect_jars(), str(CHECKPOINTS), west.bootstrap_servers, "east", "billing", options=QUICK_START
        )
        done = subprocess.run(program, capture_output=True, text=True, timeout=100, check=False)
        assert done.stdout.splitlines() == ["east.orders-1 20", "upstream [east]"], done.stderr
