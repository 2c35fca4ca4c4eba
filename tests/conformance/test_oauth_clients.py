"""Real clients log in to HMB with OAUTHBEARER: signed tokens, and Kafka's tokens without a signature."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiokafka
import aiokafka.abc
import confluent_kafka
import kafka
import kafka.errors
import pytest
from confluent_kafka.admin import AdminClient
from kafka.net.sasl.oauth import AbstractTokenProvider

import hmb
from hmb.broker.security.tokens.oauth_settings import UNSECURED
from tests.broker.security.provider import Provider
from tests.conformance.tools.shell_tools import ShellTools

pytestmark = pytest.mark.external
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
FILE_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Provider:
    return Provider(tmp_path_factory.mktemp("provider"))


@pytest.fixture(scope="module")
def broker(provider: Provider) -> Iterator[hmb.Broker]:
    with hmb.Broker(config=provider.settings()) as broker:
        with hmb.Producer(broker.bootstrap_servers, security=hmb_security(provider)) as producer:
            producer.send("t", b"hmb").result()
        yield broker


def hmb_security(provider: Provider) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token": provider.token(),
    }


@pytest.mark.parametrize("lifetime", [600, -60])
def test_confluent_kafka(broker: hmb.Broker, provider: Provider, lifetime: float) -> None:
    """librdkafka gets its tokens from a callback. The callback reports a wrong expiry for the second token."""
    errors: list[int] = []
    config: dict[str, Any] = {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "OAUTHBEARER",
        "oauth_cb": lambda _: (provider.token(lifetime=lifetime), time.time() + 600),
        "error_cb": lambda error: errors.append(error.code()),
        "log_level": 0,
    }
    client = AdminClient(config)
    client.poll(0)
    if lifetime > 0:
        assert "t" in client.list_topics(timeout=10).topics
    else:
        with pytest.raises(confluent_kafka.KafkaException):
            client.list_topics(timeout=3)
        client.poll(0)
        assert confluent_kafka.KafkaError._AUTHENTICATION in errors


def test_librdkafka_with_tokens_without_a_signature(provider: Provider, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "hmb")
    settings = provider.settings() | {
        "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class": UNSECURED,
        "sasl.oauthbearer.expected.audience": "",
        "sasl.oauthbearer.expected.issuer": "",
    }
    del settings["sasl.oauthbearer.jwks.endpoint.url"]
    with hmb.Broker(config=settings) as broker:
        config = {
            "bootstrap.servers": broker.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanisms": "OAUTHBEARER",
            "enable.sasl.oauthbearer.unsecure.jwt": True,
            "sasl.oauthbearer.config": "principal=carol",
        }
        client = AdminClient(config)
        client.poll(0)
        client.list_topics(timeout=10)
        assert "is authenticated as User:carol" in caplog.text


@pytest.mark.parametrize("lifetime", [600, -60])
def test_kafka_python(broker: hmb.Broker, provider: Provider, lifetime: float) -> None:
    class Tokens(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return provider.token(lifetime=lifetime)

    config: dict[str, Any] = {
        "bootstrap_servers": broker.bootstrap_servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": Tokens(),
        "bootstrap_timeout_ms": 3000,
    }
    if lifetime > 0:
        producer = kafka.KafkaProducer(**config)
        assert producer.send("t", b"kafka-python").get(10).topic == "t"
        producer.close()
    else:
        with pytest.raises(kafka.errors.KafkaError):
            kafka.KafkaProducer(**config, max_block_ms=2000).send("t", b"x").get(3)


def test_aiokafka(broker: hmb.Broker, provider: Provider) -> None:
    class Tokens(aiokafka.abc.AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return provider.token()

    async def send() -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap_servers,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=Tokens(),
        )
        try:
            await producer.start()
            await producer.send_and_wait("t", b"aiokafka")
        finally:
            await producer.stop()

    asyncio.run(send())


def test_the_tools_of_java(broker: hmb.Broker, provider: Provider, kafka_43: Path, tmp_path: Path) -> None:
    """The tools of Kafka 4.3.0 read a token from a file. The broker refuses a token from an unknown issuer."""
    token = tmp_path / "token"
    allowed = [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.{name}" for name in ("urls", "files")]
    file = tmp_path / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f"sasl.jaas.config={MODULE} required ;\nsasl.login.callback.handler.class={FILE_HANDLER}\n"
        f"sasl.oauthbearer.token.endpoint.url={token.as_uri()}\n"
    )
    with ShellTools(broker.bootstrap_servers, f"{allowed[0]}={token.as_uri()}", f"{allowed[1]}={token}") as tools:
        for issuer, works in (({}, True), ({"iss": "https://other.example"}, False)):
            token.write_text(provider.token(iat=time.time(), scope="kafka", **issuer))
            result = tools.run("kafka-topics", "--list", "--command-config", str(file))
            if works:
                assert result.code == 0 and "t" in result.output.split(), result.output
            else:
                assert "invalid credentials with SASL mechanism OAUTHBEARER" in result.output, result.output
