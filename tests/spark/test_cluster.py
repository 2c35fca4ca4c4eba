"""Tests of the documentation's Spark job, on one machine and on a cluster. Only two settings are different."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'hmb[spark]'")

import hmb
from hmb.bench import peers
from hmb.client.admin import Admin, NewTopic, raised
from hmb.spark.local.environment import SparkUnavailableError
from hmb.spark.local.sessions import check
from tests.conformance.kafka_cluster import KafkaCluster

pytestmark = [pytest.mark.external, pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
JOB = ROOT / "docs" / "spark" / "job.py"
CLUSTER = "local-cluster[2,1,1024]"  # a master and two workers, each in its own process, as on two machines
KEYS, EACH = ("a", "b", "c"), 500


@pytest.fixture(scope="module", autouse=True)
def spark_runs_here() -> None:
    try:
        check()
    except SparkUnavailableError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def kafka() -> None:
    try:
        peers.kafka_43_jars()
    except peers.PeerUnavailable as missing:
        pytest.skip(str(missing))


def fill(servers: str) -> None:
    with hmb.Producer(servers) as producer:
        for number in range(EACH):
            for key in KEYS:
                producer.send("events", b"%d" % number, key.encode())


def run(master: str, servers: str, directory: Path) -> dict[str, int]:
    """Run the job as a process, and return the counts that it prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(JOB), master, servers, str(directory)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    counts, _, ran_on = done.stdout.rpartition(" on ")
    assert ran_on.strip() == master
    found: dict[str, int] = ast.literal_eval(counts.splitlines()[-1])
    return found


def test_only_master_and_servers_change(tmp_path: Path) -> None:
    """Only two settings are different: the master and the bootstrap servers.

    The first bootstrap server does not run here, so the job must use the second one.
    """
    with hmb.Broker(config={"num.partitions": "3"}) as broker:
        fill(broker.bootstrap_servers)
        dead = f"{peers.HOST}:{peers.free_ports(1)[0]}"
        laptop = run("local[2]", broker.bootstrap_servers, tmp_path / "laptop")
        cluster = run(CLUSTER, f"{dead},{broker.bootstrap_servers}", tmp_path / "cluster")
    assert laptop == cluster == dict.fromkeys(KEYS, EACH)


def test_a_kafka_cluster_that_loses_a_broker(tmp_path: Path, kafka: None) -> None:
    """The job runs against two Kafka brokers, and one of them dies.

    The job continues from its checkpoint with the same bootstrap servers.
    """
    with KafkaCluster(tmp_path / "kafka") as brokers:
        with Admin(brokers.bootstrap) as admin:
            placed = {0: [1, 2], 1: [2, 1]}
            raised(admin.create_topics([NewTopic("events", assignments=placed)])["events"])
        fill(brokers.bootstrap)
        assert run(CLUSTER, brokers.bootstrap, tmp_path / "job") == dict.fromkeys(KEYS, EACH)
        brokers.brokers[1].kill()
        fill(brokers.bootstrap)
        assert run(CLUSTER, brokers.bootstrap, tmp_path / "job") == dict.fromkeys(KEYS, 2 * EACH)
