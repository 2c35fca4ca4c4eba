"""Compares every topic setting and broker setting of HMB with Kafka 4.3.0's.

For each setting, the two brokers must report the same type and the same default. They must also agree whether a client
can change the setting while the broker runs. For each setting that differs, this module lists the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hmb.bench import peers
from hmb.client import Connection
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse

pytestmark = pytest.mark.external

TOPIC, BROKER = 2, 4
DYNAMIC_DEFAULT_BROKER, STATIC_BROKER, DEFAULT = 3, 4, 5
Entry = DescribeConfigsResponse.DescribeConfigsResult.DescribeConfigsResourceResult
Entries = dict[str, Entry]

TOPIC_DIFFERENCES = {
    "min.insync.replicas": "Kafka sets it for all brokers when its storage is formatted, so its source differs",
}
BROKER_DIFFERENCES = {
    "listeners": "HMB cannot change its address while it runs",
    "listener.security.protocol.map": "see listeners",
}
# Clients of Kafka can alter these settings while the broker runs. HMB reads them at its start. It loads new files of
# certificates by itself. The type of a store has no default in HMB, because a file shows its own type.
FIXED_AT_START = {
    "sasl.enabled.mechanisms",
    "sasl.jaas.config",
    "sasl.mechanism.inter.broker.protocol",
    "ssl.cipher.suites",
    "ssl.client.auth",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.password",
    "ssl.keymanager.algorithm",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.protocol",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
}
OURS = {
    "allow.unauthenticated",
    "client.telemetry.enable",  # Kafka uses a plug-in class instead of this setting.
    "sasl.plain.users",
    "log.flush.acks.all",
    "max.decompressed.message.bytes",
    "min.incremental.fetch.session.eviction.ms",  # This value is a constant in Kafka.
    "threading",
}
# The names, or prefixes of names, of Kafka's broker settings that HMB does not have.
NOT_OURS = {
    "TLS, SASL, authorizers": (
        "ssl.",
        "sasl.",
        "security.",
        "principal.",
        "authorizer.",
        "delegation.",
        "early.start.",
    ),
    "limits of authentication": ("connection.failed.", "connections.max.reauth."),
    "a metadata log": ("metadata.",),
    "other brokers": ("controller.", "broker.", "initial.broker.", "replica.", "replication.", "leader."),
    "what other brokers are asked": ("inter.broker.", "request.timeout.", "socket.connection."),
    "tiered storage": ("remote.", "follower."),
    "share groups": ("group.share.", "share."),
    "policies, plug-ins, telemetry": (
        "alter.",
        "create.",
        "client.",
        "telemetry.",
        "config.providers",
    ),
    "metrics": ("metric.", "metrics.", "kafka."),
    "queues, purgatories, pools of threads": ("queued.", "fetch.", "producer.purgatory.", "delete.records.", "num."),
    "times of a coordinator that is on the same broker": ("group.coordinator.", "add.partitions.", "offsets."),
    "transactions' coordinator": ("transaction.", "transactional."),
    "times of the consumer protocol": ("group.consumer.",),
    "another time for producers' state than a day": ("producer.id.",),
    "buffers of the cleaner": ("log.cleaner.io.buffer.",),
    "more than one data directory": ("cordoned.", "log.dir.failure.", "log.flush.start."),
    "a length for the system's queue of connections": ("socket.listen.",),
}


def describe(broker: peers.Peer, type: int, name: str) -> Entries:
    wanted = DescribeConfigsRequest.DescribeConfigsResource(resource_type=type, resource_name=name)
    wanted.configuration_keys = None
    request = DescribeConfigsRequest(resources=[wanted], include_synonyms=True, include_documentation=True)
    with Connection(peers.HOST, broker.port) as connection:
        (result,) = connection.send(request).results
    assert result.error_code == 0
    return {entry.name: entry for entry in result.configs}


def create(broker: peers.Peer, topic: str) -> None:
    wanted = CreateTopicsRequest.CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
    with Connection(peers.HOST, broker.port) as connection:
        assert connection.send(CreateTopicsRequest(topics=[wanted])).topics[0].error_code == 0


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory, kafka_43: Path) -> Iterator[tuple[peers.Peer, peers.Peer]]:
    folder = tmp_path_factory.mktemp("settings")
    # bench/peers/brokers.py starts Kafka with these settings.
    config = {"log.segment.delete.delay.ms": "1000", "num.partitions": "1"}
    with peers.Kafka43(folder / "kafka") as kafka, peers.Hmb(folder / "hmb", config=config) as hmb:
        for broker in (hmb, kafka):
            create(broker, "t")
        yield hmb, kafka


def default(entry: Entry) -> str | None:
    """Return the default value of a setting."""
    return next((synonym.value for synonym in entry.synonyms if synonym.source == DEFAULT), None)


def places(entry: Entry) -> list[tuple[str, str | None, int]]:
    return [(synonym.name, synonym.value, synonym.source) for synonym in entry.synonyms]


def test_settings_of_a_topic_are_kafka_s(brokers: tuple[peers.Peer, peers.Peer]) -> None:
    ours, theirs = (describe(broker, TOPIC, "t") for broker in brokers)
    assert ours.keys() == theirs.keys()
    differing = {
        name
        for name, entry in ours.items()
        if (entry.value, entry.config_type, entry.config_source, entry.read_only, places(entry))
        != ((k := theirs[name]).value, k.config_type, k.config_source, k.read_only, places(k))
    }
    assert differing == TOPIC_DIFFERENCES.keys()
    assert all(entry.documentation for entry in ours.values())


def test_settings_of_a_broker_are_kafka_s(brokers: tuple[peers.Peer, peers.Peer]) -> None:
    ours, theirs = (describe(broker, BROKER, "0") for broker in brokers)
    assert ours.keys() - theirs.keys() == OURS
    differing = {
        name
        for name in ours.keys() & theirs.keys()
        if (default(ours[name]), ours[name].config_type, ours[name].read_only)
        != (default(k := theirs[name]), k.config_type, k.read_only)
    }
    assert differing == BROKER_DIFFERENCES.keys() | FIXED_AT_START


def test_every_missing_setting_of_kafka_has_a_reason(brokers: tuple[peers.Peer, peers.Peer]) -> None:
    ours, theirs = (describe(broker, BROKER, "0") for broker in brokers)
    beginnings = tuple(beginning for names in NOT_OURS.values() for beginning in names)
    assert [name for name in sorted(theirs.keys() - ours.keys()) if not name.startswith(beginnings)] == []
