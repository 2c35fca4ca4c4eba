"""Tests of embedded brokers with users and TLS."""

from __future__ import annotations

import ssl

import pytest

import hmb


@pytest.mark.parametrize(("users", "tls"), [({"alice": "secret"}, True), ({"alice": "secret"}, False), ({}, True)])
def test_a_broker_with_security_starts_in_one_line(users: dict[str, str], tls: bool) -> None:
    with hmb.Broker(users=users, tls=tls) as broker:
        with hmb.Producer(broker.bootstrap_servers, security=broker.security) as producer:
            producer.send("t", b"value").result()
        broker.restart()
        with hmb.Consumer(broker.bootstrap_servers, "t", until="end", security=broker.security) as consumer:
            assert [record.value for record in consumer] == [b"value"]
        assert broker.security["security.protocol"] == f"{'SASL_' * bool(users)}{'SSL' if tls else 'PLAINTEXT'}"


def test_a_client_without_the_password_is_refused(hmb_secure_broker: hmb.Broker) -> None:
    wrong = hmb_secure_broker.security | {"sasl.password": "wrong"}
    with (
        hmb.Admin(hmb_secure_broker.bootstrap_servers, security=wrong) as admin,
        pytest.raises(hmb.KafkaError, match="SASL_AUTHENTICATION_FAILED"),
    ):
        admin.list_topics()


def test_a_client_without_the_certificate_of_the_authority_is_refused(hmb_secure_broker: hmb.Broker) -> None:
    wrong = hmb_secure_broker.security | {"ssl.truststore.location": ""}
    with (
        hmb.Admin(hmb_secure_broker.bootstrap_servers, security=wrong, request_timeout=1) as admin,
        pytest.raises(hmb.ConnectionFailed, match="certificate is not accepted"),
    ):
        admin.list_topics()


def test_the_certificates_name_the_host() -> None:
    with hmb.Broker(tls=True) as broker:
        context = ssl.create_default_context(cafile=broker.security["ssl.truststore.location"])
        assert context.verify_mode is ssl.CERT_REQUIRED
        port = broker.listeners[0].port
        with hmb.Admin(f"127.0.0.1:{port},localhost:{port}", security=broker.security) as admin:
            assert admin.list_topics() == []


def test_wrong_settings_of_a_client_are_one_error() -> None:
    with pytest.raises(ValueError, match=r"sasl.password=\[hidden\]: is missing"):
        hmb.Producer(
            "127.0.0.1:1", security={"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "a"}
        )
    with pytest.raises(ValueError, match=r"sasl\.mechanism=GSSAPI"):
        hmb.Admin("127.0.0.1:1", security={"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"})
