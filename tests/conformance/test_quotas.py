"""Kafka 4.3.0's tools manage the quotas of HMB, and Kafka's clients obey these quotas."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

import hmb
from hmb.client.admin import ClientQuotaEntity
from tests.conformance.tools.shell_tools import ShellTools

pytestmark = pytest.mark.external
THROTTLE = re.compile(r"produce-throttle-time-max:\S+\s*: ([\d.]+)")


@pytest.fixture(scope="module")
def broker() -> Iterator[hmb.Broker]:
    with hmb.Broker() as broker:
        broker.create_topic("t")
        yield broker


@pytest.fixture(scope="module")
def tools(broker: hmb.Broker, kafka_43: Path) -> Iterator[ShellTools]:
    with ShellTools(broker.bootstrap_servers) as tools:
        yield tools


@pytest.fixture
def admin(broker: hmb.Broker) -> Iterator[hmb.Admin]:
    """Yield an admin. Remove all quotas after the test."""
    with hmb.Admin(broker.bootstrap_servers) as admin:
        yield admin
        quotas = admin.describe_quotas()
        admin.alter_quotas({entity: dict.fromkeys(values) for entity, values in quotas.items()})


@pytest.mark.parametrize(
    ("options", "entity"),
    [
        (["--entity-type", "users", "--entity-name", "alice"], ClientQuotaEntity("alice")),
        (["--entity-type", "users", "--entity-default"], ClientQuotaEntity("")),
        (["--entity-type", "clients", "--entity-name", "web"], ClientQuotaEntity(client_id="web")),
        (["--entity-type", "clients", "--entity-default"], ClientQuotaEntity(client_id="")),
        (["--user", "alice", "--client-defaults"], ClientQuotaEntity("alice", "")),
        (["--entity-type", "ips", "--entity-name", "192.0.2.1"], ClientQuotaEntity(ip="192.0.2.1")),
        (["--entity-type", "ips", "--entity-default"], ClientQuotaEntity(ip="")),
    ],
)
def test_kafka_configs_manages_quotas(
    tools: ShellTools, admin: hmb.Admin, options: list[str], entity: ClientQuotaEntity
) -> None:
    key = "producer_byte_rate" if entity.ip is None else "connection_creation_rate"
    tools("kafka-configs", "--alter", *options, "--add-config", f"{key}=1000000")
    assert admin.describe_quotas() == {entity: {key: 1_000_000}}
    assert f"{key}=1000000.0" in tools("kafka-configs", "--describe", *options).output
    tools("kafka-configs", "--alter", *options, "--delete-config", key)
    assert admin.describe_quotas() == {}


def test_kafka_configs_shows_the_error_of_the_broker(tools: ShellTools, admin: hmb.Admin) -> None:
    options = ["--entity-type", "users", "--entity-name", "alice"]
    refused = tools.run("kafka-configs", "--alter", *options, "--add-config", "producer_byte_rate=-1")
    assert "must be greater than 0" in refused.output and admin.describe_quotas() == {}


def test_a_java_producer_is_throttled(broker: hmb.Broker, tools: ShellTools, admin: hmb.Admin) -> None:
    """The quota's window permits 10 MB.

    The producer sends 12 MB, and reports the throttle time that it has received.
    """
    entity = ["--entity-type", "clients", "--entity-name", "perf"]
    tools("kafka-configs", "--alter", *entity, "--add-config", "producer_byte_rate=1000000")
    started = time.monotonic()
    size = ["--num-records", "12000", "--record-size", "1000", "--throughput", "-1", "--print-metrics"]
    output = tools("kafka-producer-perf-test", "--topic", "t", *size, "--command-property", "client.id=perf").output
    assert (throttle := THROTTLE.search(output)) is not None and float(throttle[1]) > 0, output
    assert time.monotonic() - started > 1


def test_librdkafka_is_throttled(broker: hmb.Broker, admin: hmb.Admin) -> None:
    throttled: list[float] = []
    admin.alter_quotas({ClientQuotaEntity(client_id="rdkafka"): {"producer_byte_rate": 1000}})
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "client.id": "rdkafka",
            "throttle_cb": lambda event: throttled.append(event.throttle_time),
        }
    )
    producer.produce("t", bytes(12_000))
    producer.flush(30)
    producer.poll(1)
    # The quota allows 12,000 bytes in 12 s. Its window is only 10 to 11 s long, so the broker throttles for 1 to 2 s.
    assert throttled and 1 < throttled[0] < 2.5
