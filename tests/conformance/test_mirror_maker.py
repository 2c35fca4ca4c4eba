"""Kafka's own class RemoteClusterUtils reads the checkpoints and the heartbeats of HMB's mirror."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import hmb
from hmb.bench import peers
from hmb.mirror.names import Aliases, TopicChoice
from hmb.mirror.session import Mirror, MirrorSettings
from tests.conformance.java_clients import QUICK_START

pytestmark = [pytest.mark.external, pytest.mark.slow]

PROGRAM = Path(__file__).with_name("Checkpoints.java")
EVERYTHING = re.compile(".*")


def test_remote_cluster_utils_translate_offsets() -> None:
    jars = peers.kafka_mirror_jars()
    with hmb.Broker() as source, hmb.Broker() as target:
        source.create_topic("orders", partitions=2)
        for partition in (0, 1):
            source.produce("orders", *map(str, range(10)), partition=partition)
        partitions = [hmb.TopicPartition("orders", number) for number in (0, 1)]
        with hmb.Admin(source.bootstrap_servers) as admin:
            admin.delete_records({partitions[0]: 4})
            admin.alter_group_offsets("billing", {partitions[0]: 7, partitions[1]: 5})
        Mirror(
            lambda: hmb.Admin(source.bootstrap_servers),
            lambda: hmb.Admin(target.bootstrap_servers),
            MirrorSettings(TopicChoice(EVERYTHING, aliases=Aliases("east", "west")), EVERYTHING, is_once=True),
        ).run()
        program = peers.java(jars, str(PROGRAM), target.bootstrap_servers, "east", "billing", options=QUICK_START)
        done = subprocess.run(program, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.splitlines() == ["east.orders-0 3", "east.orders-1 5", "upstream [east]"], done.stderr
