"""Tests that HMB requests metrics from clients (KIP-714), and that the clients send these metrics.

A subscription is a list of metrics that HMB requests. Kafka's tool can store, list and delete subscriptions on HMB.
"""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

import hmb
from hmb.bench import peers
from hmb.client.admin import ConfigResource, ResourceType, raised
from tests.conformance.java_clients import QUICK_START
from tests.waiting import until

CREATED = "org.apache.kafka.producer.connection.creation.total"  # librdkafka and the Java client send this metric.
pytestmark = [pytest.mark.external, pytest.mark.timeout(180)]


@pytest.fixture
def broker(caplog: pytest.LogCaptureFixture) -> Iterator[hmb.Broker]:
    """A broker that asks all clients for all metrics, every 100 ms."""
    caplog.set_level(logging.INFO)
    with hmb.Broker(config={"client.telemetry.enable": "true"}) as broker:
        with hmb.Admin(broker.bootstrap_servers) as admin:
            resource = ConfigResource(ResourceType.CLIENT_METRICS, "all")
            admin.alter_configs(resource, set={"metrics": "*", "interval.ms": "100"})
        broker.create_topic("t")
        yield broker


def values(caplog: pytest.LogCaptureFixture, name: str) -> list[str]:
    """Return the values of a metric in the broker's log."""
    lines = [record.getMessage() for record in caplog.records if "telemetry of instance" in record.getMessage()]
    return [line.rpartition(" = ")[2] for line in lines if f": {name}" in line]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_librdkafka_sends_its_metrics(broker: hmb.Broker, caplog: pytest.LogCaptureFixture, codec: str) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "enable.metrics.push": True, "compression.type": codec}
    )
    producer.produce("t", b"value")
    until(lambda: values(caplog, CREATED), "a push of librdkafka")
    assert producer.flush(60) == 0
    assert "software confluent-kafka-python " in caplog.text


def test_the_java_client_sends_its_metrics(
    broker: hmb.Broker, caplog: pytest.LogCaptureFixture, kafka_43: Path
) -> None:
    tool = "org.apache.kafka.tools.ConsoleProducer"
    arguments = ("--bootstrap-server", broker.bootstrap_servers, "--topic", "t")
    command = peers.java(kafka_43, tool, *arguments, options=QUICK_START)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        process.stdin.write(b"value\n")
        process.stdin.flush()
        until(lambda: values(caplog, CREATED), "a push of the Java client")
        process.stdin.close()
        assert process.wait(60) == 0
    assert "software apache-kafka-java 4.3.0" in caplog.text


def test_kafka_s_tool_stores_lists_and_deletes_subscriptions(broker: hmb.Broker, kafka_43: Path) -> None:
    def run(*arguments: str) -> str:
        tool = "org.apache.kafka.tools.ClientMetricsCommand"
        servers = ("--bootstrap-server", broker.bootstrap_servers)
        command = peers.java(kafka_43, tool, *servers, *arguments, options=QUICK_START)
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout

    run("--alter", "--name", "slow", "--metrics", "a,b", "--interval", "5000", "--match", "client_id=x.*")
    assert run("--list").split() == ["all", "slow"]
    with hmb.Admin(broker.bootstrap_servers) as admin:
        resource = ConfigResource(ResourceType.CLIENT_METRICS, "slow")
        entries = raised(admin.describe_configs([resource])[resource])
        expected = {"metrics": "a,b", "interval.ms": "5000", "match": "client_id=x.*"}
        assert {name: entry.value for name, entry in entries.items()} == expected
        run("--delete", "--name", "slow")
        entries = raised(admin.describe_configs([resource])[resource])
        assert [entry.value for entry in entries.values()] == ["300000", "", ""]
