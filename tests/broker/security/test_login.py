"""Tests of logins: requests before a login, wrong logins, and what a client can find out about users."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hmb
from hmb.broker.config.keys import ConfigError
from hmb.broker.network import connection_login
from hmb.broker.security import users
from hmb.broker.security.login import LOGIN, MAX_BEFORE
from hmb.broker.security.store import SecurityStore
from hmb.client.connection import Connection
from hmb.client.security.settings import client_security
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.api_versions import ApiVersionsRequest
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from hmb.protocol.messages.sasl_handshake import SaslHandshakeRequest
from hmb.security import scram
from hmb.security.certificates import Certificates
from hmb.security.scram import ScramMechanism
from tests.broker.conftest import Wire
from tests.broker.security.conftest import connect_plain, tls_settings

MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": ",".join(MECHANISMS),
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="broker" password="x" user_alice="alice-secret" user_bob="bob \\"secret\\"";'
    ),
}


def add_user(store: SecurityStore, name: str, password: str) -> None:
    for mechanism in ScramMechanism:
        salt = scram.new_salt()
        salted = scram.salted_password(mechanism, password, salt, 4096)
        assert users.alter(store, [], [users.upserted(name, mechanism, 4096, salt, salted)]) == {}


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_login, "REFUSAL_DELAY", 0.0)


@pytest.fixture
def broker() -> Iterator[hmb.Broker]:
    with hmb.Broker(config=SETTINGS) as broker:
        add_user(broker._server.context.security, "alice", "alice-secret")
        yield broker


def settings(mechanism: str, password: str = "alice-secret", **others: str) -> dict[str, str]:
    own = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "sasl.username": "alice"}
    return own | {"sasl.password": password} | {name.replace("_", "."): value for name, value in others.items()}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_client_logs_in_and_sends_requests(broker: hmb.Broker, mechanism: str) -> None:
    with hmb.Producer(broker.bootstrap_servers, security=settings(mechanism)) as producer:
        producer.send("t", b"value").result()
        assert {client.principal for _, client in broker._server.clients()} == {"User:alice"}
    with hmb.Consumer(broker.bootstrap_servers, "t", until="end", security=settings(mechanism)) as consumer:
        assert [record.value for record in consumer] == [b"value"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_login_works_over_tls(certificates: Certificates, mechanism: str) -> None:
    tls = tls_settings(certificates, "SASL_SSL")
    plain = {"sasl.enabled.mechanisms": ",".join(MECHANISMS), "sasl.plain.users": "alice:alice-secret"}
    with hmb.Broker(config=tls | plain) as broker:
        add_user(broker._server.context.security, "alice", "alice-secret")
        security = settings(mechanism, ssl_ca_location=str(certificates.authority)) | {"security.protocol": "SASL_SSL"}
        with hmb.Admin(broker.bootstrap_servers, security=security) as admin:
            assert admin.list_topics() == []


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("wrong", [{"sasl.password": "wrong"}, {"sasl.username": "nobody"}])
def test_a_wrong_name_and_a_wrong_password_get_the_same_error(
    broker: hmb.Broker, mechanism: str, wrong: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    with (
        hmb.Admin(broker.bootstrap_servers, security=settings(mechanism) | wrong) as admin,
        pytest.raises(hmb.KafkaError, match=f"due to invalid credentials with SASL mechanism {mechanism}$") as caught,
    ):
        admin.list_topics()
    assert caught.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert "secret" not in caplog.text and "=wrong" not in caplog.text


def wire_to(broker: hmb.Broker) -> Wire:
    return Wire(connect_plain(broker))


def test_only_three_apis_are_served_before_the_login(broker: hmb.Broker) -> None:
    for api_key in ApiKey:
        wire = wire_to(broker)
        wire.send(bytes.fromhex(f"0000000b {api_key:04x} 0000 00000001 0001 63"))
        answered = api_key is ApiKey.API_VERSIONS
        assert (wire.frame() is not None) is answered, api_key
        wire.socket.close()


def test_a_client_cannot_send_requests_during_or_after_a_wrong_login(broker: hmb.Broker) -> None:
    wire = wire_to(broker)
    assert wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0  # type: ignore[attr-defined]
    wire.send(bytes.fromhex("0000000b 0003 0000 00000001 0001 63"))
    assert wire.frame() is None
    wire = wire_to(broker)
    wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    answer: Any = wire.ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert wire.frame() is None


def test_an_unknown_mechanism_gets_the_list_of_mechanisms(broker: hmb.Broker) -> None:
    wire = wire_to(broker)
    answer: Any = wire.ask(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
    assert (answer.error_code, answer.mechanisms) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, MECHANISMS)
    assert wire.frame() is None


def test_requests_in_a_wrong_order_are_an_illegal_state(broker: hmb.Broker) -> None:
    answer: Any = wire_to(broker).ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret"), 2)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    wire = wire_to(broker)
    for expected in (0, ErrorCode.ILLEGAL_SASL_STATE):
        again: Any = wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert again.error_code == expected


def test_a_plaintext_listener_has_no_login() -> None:
    with hmb.Broker() as broker:
        wire = wire_to(broker)
        for request in (SaslHandshakeRequest(mechanism="PLAIN"), SaslAuthenticateRequest()):
            answer: Any = wire.ask(request, 1)
            assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert wire.ask(ApiVersionsRequest(), 0).error_code == 0  # type: ignore[attr-defined]


def test_a_client_of_kafka_0_10_sends_messages_without_headers(broker: hmb.Broker) -> None:
    wire = wire_to(broker)
    wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0)
    message = b"\0alice\0alice-secret"
    wire.send(len(message).to_bytes(4) + message)
    assert wire.frame() == b""
    assert wire.ask(MetadataRequest(topics=[]), 1).topics == []  # type: ignore[attr-defined]
    wire = wire_to(broker)
    wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0)
    wire.send(len(message).to_bytes(4) + message[:-1] + b"T")
    assert wire.frame() is None


def test_a_frame_before_the_login_is_small(broker: hmb.Broker) -> None:
    wire = wire_to(broker)
    wire.send((MAX_BEFORE + 1).to_bytes(4))
    assert wire.frame() is None
    with hmb.Producer(
        broker.bootstrap_servers, security=settings("PLAIN"), max_request_size=2 * MAX_BEFORE
    ) as producer:
        producer.send("t", bytes(MAX_BEFORE + 1)).result()


def test_a_login_has_a_deadline(broker: hmb.Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker closes the connection of a client that sends ApiVersions but does not log in within the time limit."""
    monkeypatch.setattr(connection_login, "FIRST_REQUEST_TIMEOUT", 0.2)
    wire = wire_to(broker)
    wire.ask(ApiVersionsRequest(), 0)
    assert wire.frame() is None


def test_a_session_ends_and_the_client_logs_in_again() -> None:
    config = SETTINGS | {"connections.max.reauth.ms": "300"}
    with hmb.Broker(config=config) as broker:
        connection_ = Connection("127.0.0.1", broker.listeners[0].port, security=client_security(settings("PLAIN")))
        with connection_:
            for _ in range(5):
                connection_.send(MetadataRequest(topics=[]))
                time.sleep(0.1)
        wire = wire_to(broker)
        for user, expected in (("alice", 0), ("alice", 0), ("bob", ErrorCode.SASL_AUTHENTICATION_FAILED)):
            wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            password = {"alice": "alice-secret", "bob": 'bob "secret"'}[user]
            answer: Any = wire.ask(SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{password}".encode()), 1)
            assert answer.error_code == expected
            assert answer.session_lifetime_ms == (0 if expected else 300)


def test_a_session_that_has_ended_is_closed() -> None:
    with hmb.Broker(config=SETTINGS | {"connections.max.reauth.ms": "50"}) as broker:
        wire = wire_to(broker)
        wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        wire.ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret"), 1)
        time.sleep(0.1)
        wire.send(bytes.fromhex("0000000b 0003 0000 00000001 0001 63"))
        assert wire.frame() is None


def test_unknown_users_look_like_known_ones(tmp_path: Path) -> None:
    store = SecurityStore()
    mechanism = ScramMechanism.SCRAM_SHA_256
    before = users.find(store, mechanism, "nobody")
    assert (len(before.salt), before.iterations) == (scram.SALT_SIZE, 4096)
    assert before == users.find(store, mechanism, "nobody") != users.find(store, mechanism, "somebody")
    salted = scram.salted_password(mechanism, "x", bytes(10), 8192)
    users.alter(store, [], [users.upserted("alice", mechanism, 8192, bytes(10), salted)])
    decoy = users.find(store, mechanism, "nobody")
    assert (len(decoy.salt), decoy.iterations) == (10, 8192)


def test_decoys_survive_a_restart(tmp_path: Path) -> None:
    salts = set()
    for _ in range(2):
        with hmb.Broker(tmp_path, config=SETTINGS) as broker:
            wire = wire_to(broker)
            wire.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)
            answer: Any = wire.ask(SaslAuthenticateRequest(auth_bytes=b"n,,n=nobody,r=abc"), 1)
            salts.add(bytes(answer.auth_bytes).partition(b",s=")[2])
    assert len(salts) == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "GSSAPI is Kerberos"),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER"}, "OAUTHBEARER needs the public keys"),
        ({"sasl.enabled.mechanisms": ""}, "enable at least one mechanism"),
        ({"sasl.plain.users": "alice", **dict.fromkeys([[*SETTINGS][2]], "")}, "user 1 must have the form"),
        ({[*SETTINGS][2]: 'x.Y required user_a="b";'}, "the module for PLAIN must be"),
        ({[*SETTINGS][2]: "org.apache.kafka.common.security.plain.PlainLoginModule required user_a=secret"}, "form"),
        ({"sasl.server.callback.handler.class": "x.Y"}, "may restrict access"),
        ({"listener.name.sasl_plaintext.gssapi.sasl.jaas.config": "x"}, "may restrict access"),
    ],
)
def test_wrong_settings_stop_the_start(wrong: dict[str, str], message: str) -> None:
    from hmb.broker import BrokerServer

    with pytest.raises(ConfigError, match=message) as caught:
        BrokerServer(config=SETTINGS | wrong)
    assert "secret" not in str(caught.value)


def test_no_transition_leaves_the_state_refused() -> None:
    assert {str(each.before) for each in LOGIN} >= {"LoginState.NEW", "LoginState.AUTHENTICATED"}
    assert not [each for each in LOGIN if each.before.name == "REFUSED"]
