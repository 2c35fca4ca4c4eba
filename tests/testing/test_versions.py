"""Tests of a broker that offers only the APIs and versions of an older Kafka, with real clients."""

from __future__ import annotations

import re

import confluent_kafka
import kafka
import pytest

import hmb
from hmb.broker.config.keys import ConfigError
from hmb.client.connection import ClosedByBroker, Connection
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.api_versions import ApiVersionsRequest
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.testing.versions import kafka_versions

SENT = [b"%d" % number for number in range(10)]


def asked(broker: hmb.Broker, version: int) -> dict[int, tuple[int, int]]:
    """Send an ApiVersions request. Return the first and last version of each API, in a dict whose keys are API keys."""
    host, port = broker.bootstrap_servers.split(":")
    connection = Connection(host, int(port))
    try:
        answer = connection.send(ApiVersionsRequest(client_software_name="t", client_software_version="1"), version)
    finally:
        connection.close()
    assert answer.error_code == ErrorCode.NONE
    return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}


def test_the_broker_lists_the_ranges_of_its_version() -> None:
    with hmb.Broker(as_version="2.8") as broker:
        listed = asked(broker, 3)
    assert listed[ApiKey.FETCH] == (0, 12)
    assert listed[ApiKey.PRODUCE] == (0, 9)
    assert ApiKey.DESCRIBE_TOPIC_PARTITIONS not in listed


def test_a_broker_without_a_version_offers_more_than_kafka_2_8() -> None:
    with hmb.Broker() as broker:
        assert ApiKey.DESCRIBE_TOPIC_PARTITIONS in asked(broker, 3)


def test_a_request_of_a_newer_version_closes_the_connection() -> None:
    with hmb.Broker(as_version="2.8") as broker:
        host, port = broker.bootstrap_servers.split(":")
        connection = Connection(host, int(port))
        with pytest.raises(ClosedByBroker):
            connection.send(MetadataRequest(topics=None), 12)
        connection.close()


def test_a_client_that_asks_with_a_newer_version_of_api_versions_falls_back() -> None:
    with hmb.Broker(as_version="1.0") as broker, hmb.Producer(broker.bootstrap_servers) as producer:
        producer.send("events", b"a").result()
        assert [each.value for each in broker.records("events")] == [b"a"]


@pytest.mark.parametrize("version", ["0.10.1", "0.11.0", "1.1", "2.3", "2.8", "3.9", "4.0"])
def test_confluent_kafka_sends_and_reads(version: str) -> None:
    with hmb.Broker(as_version=version) as broker:
        broker.create_topic("events")
        servers = {"bootstrap.servers": broker.bootstrap_servers}
        producer = confluent_kafka.Producer(servers)
        for value in SENT:
            producer.produce("events", value)
        assert producer.flush(20) == 0
        consumer = confluent_kafka.Consumer({**servers, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["events"])
        assert [each.value() for each in consumer.consume(len(SENT), timeout=20)] == SENT
        consumer.commit(asynchronous=False)
        consumer.close()
        assert list(broker.committed("g").values()) == [len(SENT)]


@pytest.mark.parametrize("version", ["0.9.0", "0.10.0", "0.11.0", "1.1", "2.8", "3.9", "4.0"])
def test_kafka_python_sends_and_reads(version: str) -> None:
    with hmb.Broker(as_version=version) as broker:
        broker.create_topic("events")
        given = {"api_version": (0, 9)} if version == "0.9.0" else {}  # Kafka 0.9.0 has no ApiVersions.
        servers = broker.bootstrap_servers
        producer = kafka.KafkaProducer(bootstrap_servers=servers, **given)
        for value in SENT:
            producer.send("events", value)
        producer.flush(20)
        producer.close()
        consumer = kafka.KafkaConsumer(
            "events", bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest", **given
        )
        assert [next(consumer).value for _ in SENT] == SENT
        consumer.close()
        assert list(broker.committed("g").values()) == [len(SENT)]


def test_a_patch_level_means_its_minor_version() -> None:
    assert kafka_versions("2.8.1") == kafka_versions("2.8")
    assert kafka_versions("0.8.2") != kafka_versions("0.9.0")


def test_kafka_4_lists_old_produce_versions_because_old_librdkafka_expects_them() -> None:
    assert kafka_versions("4.0")[ApiKey.PRODUCE] == range(13)
    assert kafka_versions("4.0")[ApiKey.FETCH] == range(4, 18)


@pytest.mark.parametrize("unknown", ["2.9", "5.0", "", "new"])
def test_an_unknown_version_is_one_line_that_names_the_known_ones(unknown: str) -> None:
    beginning = re.escape(f"unknown version of Kafka {unknown!r}; known versions: ")
    with pytest.raises(ConfigError, match=beginning) as error:
        hmb.Broker(as_version=unknown)
    assert "0.8.2, 0.9.0" in str(error.value)
    assert "4.3" in str(error.value)
    assert "\n" not in str(error.value)
