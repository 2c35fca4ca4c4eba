"""Clients in Go and JavaScript log in to HMB: each mechanism, with and without TLS, and with a certificate."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import hmb
from hmb.security.certificates import Certificates, make
from tests.broker.security.provider import Provider
from tests.broker.security.test_login import add_user
from tests.conformance.groups.kinds import fetched, program

pytestmark = pytest.mark.external
SCRIPT = Path(__file__).with_name("logins") / "login.js"
CLIENTS = ["franz-go", "kafka-go", "kafkajs"]
PROTOCOLS = ["SASL_PLAINTEXT", "SASL_SSL"]
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
SECRET = "alice-secret"
SECONDS = 60
PLAIN_LINE = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="{SECRET}";'


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make(tmp_path_factory.mktemp("certificates") / "made")


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Provider:
    return Provider(tmp_path_factory.mktemp("provider"))


@pytest.fixture(scope="module")
def broker(certificates: Certificates, provider: Provider) -> Iterator[hmb.Broker]:
    config = provider.settings() | {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in (*PROTOCOLS, "SSL")),
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "plain.sasl.jaas.config": PLAIN_LINE,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.broker),
        "ssl.truststore.location": str(certificates.authority),
        "listener.name.ssl.ssl.client.auth": "required",
    }
    with hmb.Broker(config=config) as broker:
        add_user(broker._server.context.security, "alice", SECRET)
        broker.create_topic("t")
        yield broker


def log_in(
    client: str, broker: hmb.Broker, listener: str, mechanism: str, secret: str, authority: str, certificate: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the program of a client. It prints the names of all topics if the login succeeds."""
    (address,) = (each.advertised for each in broker.listeners if each.name == listener)
    environment = dict(os.environ)
    if client == "kafkajs":
        command = [program("node"), str(SCRIPT)]
        environment["NODE_PATH"] = str(fetched("node") / "node_modules")
    else:
        command = [str(fetched("go/login"))]
    arguments = [client, address, mechanism, "alice", secret, authority, certificate]
    return subprocess.run([*command, *arguments], env=environment, capture_output=True, text=True, timeout=SECONDS)


@pytest.mark.parametrize("secret", ["right", "wrong"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_login(
    broker: hmb.Broker,
    certificates: Certificates,
    provider: Provider,
    client: str,
    protocol: str,
    mechanism: str,
    secret: str,
) -> None:
    if (client, mechanism) == ("kafka-go", "OAUTHBEARER"):
        pytest.skip("kafka-go 0.4.50 has no OAUTHBEARER")
    right = secret == "right"
    if mechanism == "OAUTHBEARER":
        text = provider.token(lifetime=600 if right else -60)
    else:
        text = SECRET if right else "wrong"
    authority = str(certificates.authority) if protocol == "SASL_SSL" else ""
    result = log_in(client, broker, protocol, mechanism, text, authority)
    if right:
        assert (result.returncode, result.stdout.split()) == (0, ["t"]), result.stderr
    else:
        assert result.returncode == 1 and "t" not in result.stdout.split(), result.stdout


@pytest.mark.parametrize("client", CLIENTS)
def test_a_certificate(broker: hmb.Broker, certificates: Certificates, client: str) -> None:
    authority, certificate = str(certificates.authority), str(certificates.client)
    result = log_in(client, broker, "SSL", "", "", authority, certificate)
    assert (result.returncode, result.stdout.split()) == (0, ["t"]), result.stderr
    assert log_in(client, broker, "SSL", "", "", authority).returncode == 1
