"""Real clients log in to HMB with each SASL mechanism, with and without TLS, and with client certificates."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
import kafka
import kafka.errors
import pytest
from aiokafka.helpers import create_ssl_context
from confluent_kafka.admin import AdminClient

import hmb
from hmb.security.certificates import Certificates, make
from tests.conformance.tools.shell_tools import ShellTools

pytestmark = pytest.mark.external
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
PROTOCOLS = ["SASL_PLAINTEXT", "SASL_SSL"]
MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make(tmp_path_factory.mktemp("certificates") / "made")


@pytest.fixture(scope="module")
def broker(certificates: Certificates) -> Iterator[hmb.Broker]:
    config = {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in ("PLAINTEXT", *PROTOCOLS, "SSL")),
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "plain.sasl.jaas.config": f'{MODULES["PLAIN"]} required user_alice="alice-secret";',
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.broker),
        "ssl.truststore.location": str(certificates.authority),
        "listener.name.ssl.ssl.client.auth": "required",
    }
    with hmb.Broker(config=config) as broker:
        broker.create_topic("t")
        yield broker


@pytest.fixture(scope="module")
def with_users(broker: hmb.Broker) -> hmb.Broker:
    """Add the user alice with librdkafka, as an administrator would."""
    from confluent_kafka.admin import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

    admin = AdminClient({"bootstrap.servers": address(broker, "PLAINTEXT")})
    infos = [ScramCredentialInfo(kind, 4096) for kind in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)]
    for info in infos:
        added = admin.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", info, b"alice-secret")])
        added["alice"].result(10)
    described = admin.describe_user_scram_credentials(["alice"])["alice"].result(10)
    assert {(each.mechanism, each.iterations) for each in described.scram_credential_infos} == {
        (info.mechanism, 4096) for info in infos
    }
    return broker


def address(broker: hmb.Broker, listener: str) -> str:
    (found,) = (each.advertised for each in broker.listeners if each.name == listener)
    return found.replace("127.0.0.1", "localhost")


@pytest.mark.parametrize("password", ["alice-secret", "wrong"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_confluent_kafka(
    with_users: hmb.Broker, certificates: Certificates, protocol: str, mechanism: str, password: str
) -> None:
    config: dict[str, Any] = {
        "bootstrap.servers": address(with_users, protocol),
        "security.protocol": protocol,
        "sasl.mechanisms": mechanism,
        "sasl.username": "alice",
        "sasl.password": password,
        "ssl.ca.location": str(certificates.authority),
        "log_level": 0,
    }
    errors: list[int] = []
    client = AdminClient(config | {"error_cb": lambda error: errors.append(error.code())})
    if password == "wrong":
        with pytest.raises(confluent_kafka.KafkaException):
            client.list_topics(timeout=3)
        client.poll(0)
        assert confluent_kafka.KafkaError._AUTHENTICATION in errors
    else:
        assert "t" in client.list_topics(timeout=10).topics


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_kafka_python(with_users: hmb.Broker, certificates: Certificates, protocol: str, mechanism: str) -> None:
    config: dict[str, Any] = {
        "bootstrap_servers": address(with_users, protocol),
        "security_protocol": protocol,
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": "alice-secret",
        "ssl_cafile": str(certificates.authority),
        "bootstrap_timeout_ms": 3000,
    }
    producer = kafka.KafkaProducer(**config)
    assert producer.send("t", b"kafka-python").get(10).topic == "t"
    producer.close()
    with pytest.raises(kafka.errors.KafkaError):
        kafka.KafkaProducer(**config | {"sasl_plain_password": "wrong"}, max_block_ms=2000).send("t", b"x").get(3)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_aiokafka(with_users: hmb.Broker, certificates: Certificates, protocol: str, mechanism: str) -> None:
    async def send(password: str) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=address(with_users, protocol),
            security_protocol=protocol,
            sasl_mechanism=mechanism,
            sasl_plain_username="alice",
            sasl_plain_password=password,
            ssl_context=create_ssl_context(cafile=str(certificates.authority)),
            request_timeout_ms=3000,
        )
        try:
            await producer.start()
            await producer.send_and_wait("t", b"aiokafka")
        finally:
            await producer.stop()

    asyncio.run(send("alice-secret"))
    with pytest.raises(aiokafka.errors.KafkaError):
        asyncio.run(send("wrong"))


def test_certificates_of_clients(with_users: hmb.Broker, certificates: Certificates) -> None:
    config = {
        "bootstrap.servers": address(with_users, "SSL"),
        "security.protocol": "SSL",
        "ssl.ca.location": str(certificates.authority),
        "log_level": 0,
    }
    keys = {"ssl.certificate.location": str(certificates.client), "ssl.key.location": str(certificates.client)}
    assert "t" in AdminClient(config | keys).list_topics(timeout=10).topics
    with pytest.raises(confluent_kafka.KafkaException):
        AdminClient(config).list_topics(timeout=3)


def properties(directory: Path, **lines: str) -> str:
    path = directory / "client.properties"
    path.write_text("".join(f"{name.replace('_', '.')}={value}\n" for name, value in lines.items()))
    return str(path)


def test_the_tools_of_java(with_users: hmb.Broker, certificates: Certificates, kafka_43: Path, tmp_path: Path) -> None:
    """The tools of Kafka 4.3.0 log in with each mechanism. The test starts only one JVM for each listener."""
    for protocol in PROTOCOLS:
        with ShellTools(address(with_users, protocol)) as tools:
            for mechanism in MECHANISMS:
                for password in ("alice-secret", "wrong"):
                    file = properties(
                        tmp_path,
                        security_protocol=protocol,
                        sasl_mechanism=mechanism,
                        sasl_jaas_config=f'{MODULES[mechanism]} required username="alice" password="{password}";',
                        ssl_truststore_type="PEM",
                        ssl_truststore_location=str(certificates.authority),
                    )
                    result = tools.run("kafka-topics", "--list", "--command-config", file)
                    if password == "wrong":
                        assert f"invalid credentials with SASL mechanism {mechanism}" in result.output, result.output
                    else:
                        assert result.code == 0 and "t" in result.output.split(), result.output


def test_kafka_configs_manages_users(with_users: hmb.Broker, kafka_43: Path, tmp_path: Path) -> None:
    with ShellTools(address(with_users, "PLAINTEXT")) as tools:
        user = ("--entity-type", "users", "--entity-name", "carol")
        tools(
            "kafka-configs", "--alter", *user, "--add-config", "SCRAM-SHA-512=[iterations=8192,password=carol-secret]"
        )
        security = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "carol",
            "sasl.password": "carol-secret",
        }
        with hmb.Admin(address(with_users, "SASL_PLAINTEXT"), security=security) as admin:
            assert [topic.name for topic in admin.list_topics()] == ["t"]
        tools("kafka-configs", "--alter", *user, "--delete-config", "SCRAM-SHA-512")
        with (
            hmb.Admin(address(with_users, "SASL_PLAINTEXT"), security=security) as admin,
            pytest.raises(hmb.KafkaError, match="SASL_AUTHENTICATION_FAILED"),
        ):
            admin.list_topics()


def test_java_with_a_certificate(
    with_users: hmb.Broker, certificates: Certificates, kafka_43: Path, tmp_path: Path
) -> None:
    common = {
        "security_protocol": "SSL",
        "ssl_truststore_type": "PEM",
        "ssl_truststore_location": str(certificates.authority),
    }
    with ShellTools(address(with_users, "SSL")) as tools:
        own = {"ssl_keystore_type": "PEM", "ssl_keystore_location": str(certificates.client)}
        file = properties(tmp_path, **common, **own)
        assert "t" in tools("kafka-topics", "--list", "--command-config", file).output.split()
        file = properties(tmp_path, **common)
        assert tools.run("kafka-topics", "--list", "--command-config", file).code != 0


def test_kafka_acls_manages_acls(kafka_43: Path, tmp_path: Path) -> None:
    """kafka-acls of Kafka 4.3.0 creates, lists and deletes ACLs, and the ACLs apply to Kafka's clients."""
    config = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    with hmb.Broker(users={"admin": "admin-secret", "alice": "alice-secret"}, config=config) as broker:
        broker.create_topic("t")
        files = {}
        for user in ("admin", "alice"):
            (tmp_path / user).mkdir()
            files[user] = properties(
                tmp_path / user,
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism="SCRAM-SHA-256",
                sasl_jaas_config=f'{MODULES["SCRAM-SHA-256"]} required username="{user}" password="{user}-secret";',
            )
        with ShellTools(broker.bootstrap_servers) as tools:
            assert "t" not in tools("kafka-topics", "--list", "--command-config", files["alice"]).output.split()
            denied = tools.run("kafka-acls", "--list", "--command-config", files["alice"])
            assert "ClusterAuthorizationException" in denied.output or "Not allowed" in denied.output, denied.output
            admin = ("--command-config", files["admin"])
            added = ("--allow-principal", "User:alice", "--consumer", "--topic", "t", "--group", "g")
            tools("kafka-acls", "--add", *added, *admin)
            listed = tools("kafka-acls", "--list", *admin).output
            assert "principal=User:alice, host=*, operation=READ, permissionType=ALLOW" in listed, listed
            assert "t" in tools("kafka-topics", "--list", "--command-config", files["alice"]).output.split()
            tools("kafka-acls", "--remove", "--force", *added, *admin)
            assert "t" not in tools("kafka-topics", "--list", "--command-config", files["alice"]).output.split()


def test_kafka_delegation_tokens(kafka_43: Path, tmp_path: Path) -> None:
    """kafka-delegation-tokens of Kafka 4.3.0 manages tokens, and Java's client logs in with one."""
    config = {"delegation.token.secret.key": "key"}
    with hmb.Broker(users={"alice": "alice-secret"}, config=config) as broker:
        broker.create_topic("t")

        def file_of(name: str, options: str) -> str:
            (tmp_path / name).mkdir()
            return properties(
                tmp_path / name,
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism="SCRAM-SHA-256",
                sasl_jaas_config=f"{MODULES['SCRAM-SHA-256']} required {options};",
            )

        alice = ("--command-config", file_of("alice", 'username="alice" password="alice-secret"'))
        with ShellTools(broker.bootstrap_servers) as tools:
            made = tools(
                "kafka-delegation-tokens", "--create", "--max-life-time-period", "-1", *alice,
                "--renewer-principal", "User:bob",
            )  # fmt: skip
            words = made.rows()[-1]
            assert "User:alice" in words and "[User:bob]" in made.output.replace(" ", ""), made.output
            token_id, hmac = words[:2]
            token = file_of("token", f'username="{token_id}" password="{hmac}" tokenauth="true"')
            assert "t" in tools("kafka-topics", "--list", "--command-config", token).output.split()
            described = tools("kafka-delegation-tokens", "--describe", "--owner-principal", "User:alice", *alice)
            assert token_id in described.output
            renew = tools("kafka-delegation-tokens", "--renew", "--renew-time-period", "-1", "--hmac", hmac, *alice)
            assert "Completed renew operation" in renew.output
            expire = tools("kafka-delegation-tokens", "--expire", "--expiry-time-period", "-1", "--hmac", hmac, *alice)
            assert "Completed expire operation" in expire.output
            again = tools.run("kafka-delegation-tokens", "--renew", "--renew-time-period", "-1", "--hmac", hmac, *alice)
            assert "DelegationTokenNotFoundException" in again.output, again.output


def test_librdkafka_manages_acls(tmp_path: Path) -> None:
    from confluent_kafka.admin import (
        AclBinding,
        AclBindingFilter,
        AclOperation,
        AclPermissionType,
        ResourcePatternType,
        ResourceType,
    )

    config = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with hmb.Broker(config=config) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        parts = ("User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW)
        new = AclBinding(ResourceType.TOPIC, "orders", ResourcePatternType.PREFIXED, *parts)
        admin.create_acls([new])[new].result(10)
        anything = AclBindingFilter(
            *(ResourceType.ANY, None, ResourcePatternType.ANY),
            *(None, None, AclOperation.ANY, AclPermissionType.ANY),
        )
        assert admin.describe_acls(anything).result(10) == [new]
        matching = AclBindingFilter(
            *(ResourceType.TOPIC, "orders-2026", ResourcePatternType.MATCH),
            *(None, None, AclOperation.ANY, AclPermissionType.ANY),
        )
        assert admin.delete_acls([matching])[matching].result(10) == [new]
        assert admin.describe_acls(anything).result(10) == []
