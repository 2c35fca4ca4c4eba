"""Clients that send requests about the cluster, its users, ACLs and quotas.

The requests of these clients are captured as golden files.
"""

from __future__ import annotations

import time

import confluent_kafka

import hmb
from hmb.bench import peers
from hmb.client.admin import ConfigResource, ResourceType
from hmb.client.connection import Connection
from hmb.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from hmb.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from hmb.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from hmb.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from hmb.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from hmb.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from hmb.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.conformance.java_clients import run

Directory = AlterReplicaLogDirsRequest.AlterReplicaLogDir


def kafka_43_cluster_tools(bootstrap: str, topic: str) -> None:
    """Run the shell tools of Kafka 4.3.0 for controllers, features, metrics, ACLs and users."""
    jars, where = peers.kafka_43_jars(), ["--bootstrap-server", bootstrap]

    def tool(name: str, *arguments: str) -> None:
        run(jars, name, *where, *arguments)

    tool("org.apache.kafka.tools.MetadataQuorumCommand", "describe", "--status")
    tool("org.apache.kafka.tools.FeatureCommand", "upgrade", "--feature", "transaction.version=2")
    tool("org.apache.kafka.tools.ClientMetricsCommand", "--list")
    who = ["--allow-principal", "User:alice", "--operation", "Read", "--topic", topic]
    tool("org.apache.kafka.tools.AclCommand", "--add", *who)
    tool("org.apache.kafka.tools.AclCommand", "--list", "--topic", topic)
    tool("org.apache.kafka.tools.AclCommand", "--remove", "--force", *who)
    user = ["--entity-type", "users", "--entity-name", "alice"]
    tool("kafka.admin.ConfigCommand", "--alter", *user, "--add-config", "SCRAM-SHA-256=[password=secret]")
    tool("kafka.admin.ConfigCommand", "--describe", *user)


def kafka_43_quotas(bootstrap: str, topic: str) -> None:
    """Set and list a quota with kafka-configs of Kafka 4.3.0."""

    def configs(*arguments: str) -> None:
        run(peers.kafka_43_jars(), "kafka.admin.ConfigCommand", "--bootstrap-server", bootstrap, *arguments)

    entity = ["--entity-type", "users", "--entity-name", "alice", "--entity-type", "clients", "--entity-default"]
    configs("--alter", *entity, "--add-config", "producer_byte_rate=1048576,request_percentage=12.5")
    configs("--describe", *entity)


def hmb_login(bootstrap: str, topic: str) -> None:
    """Send requests that Kafka refuses.

    The client tries to log in, although the listener has no SASL. It tries to move a partition to a directory that
    does not exist. It also tries to create, renew, expire and describe delegation tokens.
    """
    host, _, port = bootstrap.rpartition(":")
    connection = Connection(host, int(port), "hmb", 30.0)
    connection.send(SaslHandshakeRequest(mechanism="PLAIN"))
    connection.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"))
    moved = Directory.AlterReplicaLogDirTopic(name=topic, partitions=[0])
    connection.send(AlterReplicaLogDirsRequest(dirs=[Directory(path="/nowhere", topics=[moved])]))
    renewer = CreateDelegationTokenRequest.CreatableRenewers(principal_type="User", principal_name="bob")
    connection.send(CreateDelegationTokenRequest(renewers=[renewer], max_lifetime_ms=86_400_000))
    connection.send(RenewDelegationTokenRequest(hmac=bytes(range(64)), renew_period_ms=3_600_000))
    connection.send(ExpireDelegationTokenRequest(hmac=bytes(range(64)), expiry_time_period_ms=-1))
    owner = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner(principal_type="User", principal_name="alice")
    connection.send(DescribeDelegationTokenRequest(owners=[owner]))
    connection.close()


def librdkafka_telemetry(bootstrap: str, topic: str) -> None:
    """Ask a producer of librdkafka for one of its metrics. The producer sends the metric to the broker."""
    with hmb.Admin(bootstrap) as admin:
        wanted = {"metrics": "org.apache.kafka.producer.connection.creation.total", "interval.ms": "100"}
        admin.alter_configs(ConfigResource(ResourceType.CLIENT_METRICS, topic), set=wanted)
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "client.id": "rdkafka"})
    producer.produce(topic, b"good morning")
    producer.flush()
    time.sleep(1)  # During this time, the producer sends its metrics several times.
