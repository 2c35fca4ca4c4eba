"""Tests of listeners with TLS: the handshake, client certificates, client errors, and wrong settings."""

from __future__ import annotations

import logging
import shutil
import socket
import ssl
from pathlib import Path

import pytest

import hmb
from hmb.broker.config.keys import ConfigError
from hmb.broker.network import requests
from hmb.client.admin import ConfigResource, ResourceType, raised
from hmb.protocol.messages.api_versions import ApiVersionsRequest
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.records import read_records
from hmb.security.certificates import Certificates, make
from tests.broker.calls import fetch, outcome, produce
from tests.broker.security.conftest import connect_plain, connect_tls, tls_settings
from tests.storage.conftest import batch
from tests.waiting import until


def logged(caplog: pytest.LogCaptureFixture, text: str) -> None:
    until(lambda: any(text in record.getMessage() for record in caplog.records), f"the log contains {text!r}")


def test_records_are_produced_and_fetched_over_tls(certificates: Certificates) -> None:
    """Records arrive over TLS, even if a response does not fit into the socket's buffer.

    The broker sends the response of 4 MB encrypted, in many pieces.
    """
    with hmb.Broker(config=tls_settings(certificates)) as broker:
        wire = connect_tls(broker, certificates)
        wire.ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")]), 9)
        sent = batch(400, size=2000).view
        for _ in range(5):
            assert outcome(wire.ask(produce(sent), 9)) == 0
        answer = wire.ask(fetch(max_bytes=1 << 23, partition_max_bytes=1 << 23), 12)
        stored = answer.responses[0].partitions[0].records  # type: ignore[attr-defined]
        assert len(list(read_records(stored))) == 2000
        assert [each.value for each in list(read_records(stored))[:400]] == [each.value for each in read_records(sent)]


def test_versions_before_tls_1_2_are_refused(certificates: Certificates) -> None:
    with hmb.Broker(config=tls_settings(certificates)) as broker:
        assert isinstance(wire := connect_tls(broker, certificates).socket, ssl.SSLSocket)
        assert wire.version() == "TLSv1.3"
        context = ssl.create_default_context(cafile=str(certificates.authority))
        context.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.warns(DeprecationWarning):
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises(ssl.SSLError):
            context.wrap_socket(connect_plain(broker), server_hostname="localhost")


def test_plain_text_to_a_tls_port_is_one_line_in_the_log_and_an_alert(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    with hmb.Broker(config=tls_settings(certificates)) as broker, connect_plain(broker) as client:
        client.sendall(bytes.fromhex("0000000b 0012 0000 00000001 0001 63"))
        assert client.recv(7)[:2] == b"\x15\x03"
        assert client.recv(1) == b""
        logged(caplog, "the client sent plain text to a listener with TLS")
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1


def test_tls_to_a_plain_port_is_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with hmb.Broker() as broker, connect_plain(broker) as client:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            ssl.create_default_context().wrap_socket(client, server_hostname="localhost")
        logged(caplog, "the bytes look like a TLS handshake")
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1


def test_a_handshake_has_a_deadline(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "FIRST_REQUEST_TIMEOUT", 0.5)
    with hmb.Broker(config=tls_settings(certificates)) as broker, connect_plain(broker) as client:
        client.sendall(b"\x16\x03\x01\x02")  # the beginning of a ClientHello
        assert client.recv(1) == b""
        until(lambda: not broker.connected_clients, "the broker forgets the connection")


def test_a_certificate_names_the_principal(certificates: Certificates) -> None:
    settings = tls_settings(certificates, ssl_client_auth="required", ssl_principal_mapping_rules="RULE:^CN=(.*)$/$1/U")
    with hmb.Broker(config=settings) as broker:
        wire = connect_tls(broker, certificates, certificates.client)
        wire.ask(ApiVersionsRequest(), 0)
        (_, client), *_ = broker._server.clients()
        assert client.principal == "User:CLIENT"


@pytest.mark.parametrize(("auth", "principal"), [("requested", "User:CN=client"), ("none", "User:ANONYMOUS")])
def test_the_principal_without_mapping_rules(certificates: Certificates, auth: str, principal: str) -> None:
    with hmb.Broker(config=tls_settings(certificates, ssl_client_auth=auth)) as broker:
        wire = connect_tls(broker, certificates, certificates.client)
        wire.ask(ApiVersionsRequest(), 0)
        (_, client), *_ = broker._server.clients()
        assert client.principal == principal


def test_a_client_without_a_certificate_is_refused(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    with hmb.Broker(config=tls_settings(certificates, ssl_client_auth="required")) as broker:
        with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
            connect_tls(broker, certificates).ask(ApiVersionsRequest(), 0)
        logged(caplog, "the client has no certificate, and ssl.client.auth=required")


def test_a_certificate_of_an_unknown_authority_is_refused(
    certificates: Certificates, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = make(tmp_path / "other")
    with hmb.Broker(config=tls_settings(certificates, ssl_client_auth="required")) as broker:
        with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
            connect_tls(broker, certificates, other.client).ask(ApiVersionsRequest(), 0)
        logged(caplog, "the broker does not trust the client's certificate")


def test_new_certificates_are_used_without_a_restart(certificates: Certificates, tmp_path: Path) -> None:
    other = make(tmp_path / "other")
    store = tmp_path / "broker.pem"
    shutil.copy(certificates.broker, store)
    with hmb.Broker(config=tls_settings(certificates, ssl_keystore_location=str(store))) as broker:
        connect_tls(broker, certificates).ask(ApiVersionsRequest(), 0)
        shutil.copy(other.broker, store)
        connect_tls(broker, other).ask(ApiVersionsRequest(), 0)
        store.write_text("damaged")
        connect_tls(broker, other).ask(ApiVersionsRequest(), 0)


def test_each_listener_has_its_own_protocol_and_settings(certificates: Certificates) -> None:
    settings = tls_settings(certificates) | {
        "listeners": "PLAIN://127.0.0.1:0,INSIDE://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "listener.security.protocol.map": "PLAIN:PLAINTEXT,INSIDE:SSL,CONTROLLER:SSL",
        "controller.listener.names": "CONTROLLER",
        "listener.name.inside.ssl.client.auth": "required",
    }
    with hmb.Broker(config=settings) as broker:
        assert [each.name for each in broker.listeners] == ["PLAIN", "INSIDE"]
        connect_tls(broker, certificates, certificates.client, listener=1).ask(ApiVersionsRequest(), 0)
        with connect_plain(broker) as client:
            client.sendall(bytes.fromhex("0000000b 0012 0000 00000001 0001 63"))
            assert client.recv(1) == b"\0"


def test_key_and_certificates_can_be_texts(certificates: Certificates) -> None:
    key, _, chain = certificates.broker.read_text().partition("-----END PRIVATE KEY-----\n")
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": (key + "-----END PRIVATE KEY-----").replace("\n", " "),
        "ssl.keystore.certificate.chain": chain.replace("\n", ""),
        "ssl.truststore.certificates": certificates.authority.read_text(),
    }
    with hmb.Broker(config=settings) as broker, hmb.Broker() as plain:
        connect_tls(broker, certificates).ask(ApiVersionsRequest(), 0)
        assert plain.is_running
        assert "PRIVATE KEY" not in repr(vars(broker)["_server"].security)


WRONG = [
    ({"ssl.keystore.location": ""}, "a listener with TLS needs a private key"),
    ({"ssl.keystore.location": "/nowhere/x.pem"}, "cannot read /nowhere/x.pem: No such file or directory"),
    ({"ssl.keystore.type": "JKS"}, "is not a JKS store"),
    ({"ssl.client.auth": "required", "ssl.truststore.location": ""}, "ssl.client.auth needs trusted certificates"),
    ({"ssl.client.auth": "always"}, "the value must be one of none, requested, required"),
    ({"ssl.enabled.protocols": "TLSv1.1"}, "older versions are insecure"),
    ({"ssl.engine.factory.class": "x.Y"}, "ssl.engine.factory.class=.*HMB does not have this setting"),
    ({"principal.builder.class": "x.Y"}, "principal.builder.class=.*may restrict access"),
    ({"listener.name.outside.ssl.client.auth": "required"}, "the broker has no listener OUTSIDE"),
    ({"listener.name.ssl.ssl.client.author": "required"}, "did you mean 'ssl.client.auth'"),
    ({"ssl.principal.mapping.rules": "RULE:x"}, "does not begin with a rule"),
    ({"ssl.keystore.location": "", "ssl.keystore.key": "secret"}, "ssl.keystore.certificate.chain"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_wrong_settings_stop_the_start(certificates: Certificates, wrong: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        hmb_server(tls_settings(certificates) | wrong)


def hmb_server(settings: dict[str, str]) -> None:
    from hmb.broker import BrokerServer

    BrokerServer(config=settings)


def test_a_secret_is_neither_described_nor_in_an_error(certificates: Certificates) -> None:
    with pytest.raises(ConfigError) as caught:
        hmb_server(tls_settings(certificates) | {"ssl.keystore.location": "", "ssl.keystore.key": "secret-key"})
    assert "secret-key" not in str(caught.value)
    with hmb.Broker(config={"ssl.key.password": "secret-word"}) as broker, hmb.Admin(broker.bootstrap_servers) as admin:
        (described,) = admin.describe_configs([ConfigResource(ResourceType.BROKER, "0")]).values()
        settings = raised(described)
        assert "secret-word" not in repr(settings)
        assert settings["ssl.key.password"].value is None


def test_an_idle_connection_with_tls_is_closed(certificates: Certificates) -> None:
    with hmb.Broker(config=tls_settings(certificates) | {"connections.max.idle.ms": "1"}) as broker:
        wire = connect_tls(broker, certificates)
        wire.ask(ApiVersionsRequest(), 0)
        assert wire.frame() is None


def test_a_broken_socket_does_not_stop_the_listener(certificates: Certificates) -> None:
    with hmb.Broker(config=tls_settings(certificates)) as broker:
        for _ in range(3):
            with connect_plain(broker) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connect_tls(broker, certificates).ask(ApiVersionsRequest(), 0)
