"""Tests of OAUTHBEARER: valid tokens, refused tokens, their expiry, and settings of brokers and clients."""

from __future__ import annotations

import base64
import hmac
import http.server
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

import hmb
from hmb.broker import BrokerServer
from hmb.broker.config.keys import ConfigError
from hmb.broker.network import connection_login
from hmb.broker.security.tokens.oauth_settings import UNSECURED
from hmb.broker.security.tokens.oauthbearer import OauthExchange, OauthState, Token, TokenError
from hmb.client.connection import Connection
from hmb.client.security.settings import SecuritySettingError, client_security
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from hmb.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.broker.conftest import Wire
from tests.broker.security.conftest import connect_plain
from tests.broker.security.provider import AUDIENCE, ISSUER, Provider
from tests.waiting import until

PREFIX = "listener.name.sasl_plaintext.oauthbearer."


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Provider:
    return Provider(tmp_path_factory.mktemp("provider"))


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_login, "REFUSAL_DELAY", 0.0)


@pytest.fixture(scope="module")
def broker(provider: Provider) -> Iterator[hmb.Broker]:
    with hmb.Broker(config=provider.settings()) as broker:
        yield broker


def security(token: str | Callable[[], str]) -> dict[str, str | Callable[[], str]]:
    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token": token}


def unsecured(**claims: Any) -> str:
    return jwt.encode({"sub": "alice", "exp": time.time() + 600} | claims, None, "none")


def test_a_valid_token_is_a_login(broker: hmb.Broker, provider: Provider) -> None:
    with hmb.Producer(broker.bootstrap_servers, security=security(provider.token())) as producer:
        producer.send("t", b"value").result()
        assert "User:alice" in {client.principal for _, client in broker._server.clients()}
    source = security(lambda: provider.token(sub="bob"))
    with hmb.Consumer(broker.bootstrap_servers, "t", until="end", security=source) as consumer:
        assert [record.value for record in consumer] == [b"value"]


def hmac_token(provider: Provider) -> str:
    """Return a forged token. Its signature is an HMAC, with the identity provider's public key as the secret.

    Old versions of some JWT libraries accepted this kind of token.
    """

    def part(content: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()

    claims = {"sub": "admin", "iss": ISSUER, "aud": AUDIENCE, "exp": time.time() + 600}
    text = f"{part({'alg': 'HS256', 'kid': 'key-1'})}.{part(claims)}"
    public = provider.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return f"{text}.{base64.urlsafe_b64encode(hmac.digest(public, text.encode(), 'sha256')).rstrip(b'=').decode()}"


def deeply_nested() -> str:
    """Return a header that the JSON decoder cannot decode, because its nesting is too deep for the stack."""
    return base64.urlsafe_b64encode(b"[" * 100_000).rstrip(b"=").decode()


def changed(provider: Provider) -> str:
    header, _, signature = provider.token().split(".")
    return f"{header}.{provider.token(sub='admin').split('.')[1]}.{signature}"


REFUSED: list[tuple[Callable[[Provider], str], str]] = [
    (lambda provider: provider.token(lifetime=-1), "expired"),
    (lambda provider: provider.token(exp=None), '"exp"'),
    (lambda provider: provider.token(sub=None), '"sub"'),
    (lambda provider: provider.token(iss="https://other.example"), "issuer"),
    (lambda provider: provider.token(aud="other"), "[Aa]udience"),
    (lambda provider: provider.token(aud=None), '"aud"'),
    (lambda provider: provider.token(nbf=time.time() + 60), "not yet valid"),
    (lambda provider: provider.token(key_id="other"), "no key with the id"),
    (lambda provider: unsecured(iss=ISSUER, aud=AUDIENCE), "no key with the id"),
    (changed, "[Ss]ignature"),
    (hmac_token, "alg value is not allowed"),
    (lambda provider: "rubbish", "refused"),
    (lambda provider: f"{deeply_nested()}.e30.AA", "not valid"),
]


@pytest.mark.parametrize(("make", "reason"), REFUSED)
def test_other_tokens_are_refused(
    broker: hmb.Broker,
    provider: Provider,
    make: Callable[[Provider], str],
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The client gets the same error for each refused token. The log contains the reason, but never the token."""
    token = make(provider)
    with (
        hmb.Admin(broker.bootstrap_servers, security=security(token)) as admin,
        pytest.raises(hmb.KafkaError, match=r"due to invalid credentials with SASL mechanism OAUTHBEARER$") as caught,
    ):
        admin.list_topics()
    assert caught.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    (line,) = {record.getMessage() for record in caplog.records if "refused" in record.getMessage()}
    assert re.search(reason, line) and token not in line


def wire_to(broker: hmb.Broker) -> Wire:
    return Wire(connect_plain(broker))


def authenticate(wire: Wire, token: str) -> Any:
    wire.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
    return wire.ask(SaslAuthenticateRequest(auth_bytes=f"n,,\x01auth=Bearer {token}\x01\x01".encode()), 2)


def test_an_error_is_explained_before_the_refusal(broker: hmb.Broker, provider: Provider) -> None:
    wire = wire_to(broker)
    answer = authenticate(wire, provider.token(lifetime=-1))
    assert (answer.error_code, bytes(answer.auth_bytes)) == (0, b'{"status":"invalid_token"}')
    refusal: Any = wire.ask(SaslAuthenticateRequest(auth_bytes=b"\x01"), 2)
    assert refusal.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert wire.frame() is None


def test_a_session_ends_with_the_token(provider: Provider) -> None:
    """A token that is valid for 0.2 s permits a session of at most 0.2 s.

    PyJWT rounds the expiry time of a token down to a whole second, and could refuse this token as expired. In this
    test, the broker therefore tolerates a clock difference of 30 s.
    """
    with hmb.Broker(config=provider.settings(sasl_oauthbearer_clock_skew_seconds="30")) as broker:
        wire = wire_to(broker)
        answer = authenticate(wire, provider.token(lifetime=60))
        assert 0 < answer.session_lifetime_ms <= 60_000
        again = authenticate(wire, provider.token(lifetime=0.2))
        assert again.error_code == 0 and again.session_lifetime_ms <= 200
        time.sleep(0.3)
        wire.send(bytes.fromhex("0000000b 0003 0000 00000001 0001 63"))
        assert wire.frame() is None
    with hmb.Broker(config=provider.settings(connections_max_reauth_ms="5000")) as broker:
        assert authenticate(wire_to(broker), provider.token()).session_lifetime_ms == 5000


def test_a_client_cannot_change_its_name_when_it_logs_in_again(broker: hmb.Broker, provider: Provider) -> None:
    wire = wire_to(broker)
    assert authenticate(wire, provider.token()).error_code == 0
    assert authenticate(wire, provider.token(sub="bob")).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert wire.frame() is None


def test_a_client_asks_for_a_new_token_before_its_session_ends(provider: Provider) -> None:
    tokens = []

    def source() -> str:
        tokens.append(provider.token(lifetime=1))
        return tokens[-1]

    given = client_security(security(source))
    settings = provider.settings(sasl_oauthbearer_clock_skew_seconds="30")
    with (
        hmb.Broker(config=settings) as broker,
        Connection("127.0.0.1", broker.listeners[0].port, security=given) as client,
    ):

        def has_new_token() -> bool:
            client.send(MetadataRequest(topics=[]))
            return len(set(tokens)) >= 2

        until(has_new_token, "the client logs in with a second token")


def test_new_keys_of_the_provider_are_loaded_when_a_token_names_them(tmp_path: Path) -> None:
    provider = Provider(tmp_path)
    with hmb.Broker(config=provider.settings(sasl_oauthbearer_jwks_endpoint_refresh_ms="1")) as broker:
        assert authenticate(wire_to(broker), provider.token()).auth_bytes == b""
        provider.publish("key-2")
        assert authenticate(wire_to(broker), provider.token("key-2")).auth_bytes == b""
        assert authenticate(wire_to(broker), provider.token("key-1")).auth_bytes != b""


@contextmanager
def web_server(answers: dict[str, bytes], requests: list[tuple[str, str | None, bytes]]) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            requests.append((self.path, self.headers.get("Authorization"), body))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answers[self.path])

        do_POST = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_keys_and_tokens_come_from_the_address_of_a_provider(provider: Provider, tmp_path: Path) -> None:
    answers = {
        "/keys": provider.file.read_bytes(),
        "/token": json.dumps({"access_token": provider.token(), "token_type": "Bearer"}).encode(),
    }
    requests: list[tuple[str, str | None, bytes]] = []
    with web_server(answers, requests) as address:
        settings = provider.settings() | {"sasl.oauthbearer.jwks.endpoint.url": f"{address}/keys"}
        client = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": f"{address}/token",
            "sasl.oauthbearer.client.credentials.client.id": "id",
            "sasl.oauthbearer.client.credentials.client.secret": "word",
            "sasl.oauthbearer.scope": "kafka",
        }
        with hmb.Broker(config=settings) as broker:
            with hmb.Admin(broker.bootstrap_servers, security=client) as admin:
                assert admin.list_topics() == []
            (tmp_path / "token").write_text(provider.token() + "\n")
            of_file = {name: client[name] for name in ("security.protocol", "sasl.mechanism")}
            of_file["sasl.oauthbearer.token.endpoint.url"] = (tmp_path / "token").as_uri()
            with hmb.Admin(broker.bootstrap_servers, security=of_file) as admin:
                assert admin.list_topics() == []
    assert requests[0][0] == "/keys"
    assert ("/token", "Basic aWQ6d29yZA==", b"grant_type=client_credentials&scope=kafka") in requests


def test_unsecured_tokens_only_if_a_setting_asks_for_them(provider: Provider, caplog: pytest.LogCaptureFixture) -> None:
    settings = provider.settings() | {f"{PREFIX}sasl.server.callback.handler.class": UNSECURED}
    with pytest.raises(ConfigError, match="verifies nothing"):
        BrokerServer(config=settings)
    del settings["sasl.oauthbearer.jwks.endpoint.url"]
    with hmb.Broker(config=settings) as broker:
        assert authenticate(wire_to(broker), unsecured(iss=ISSUER, aud=AUDIENCE)).auth_bytes == b""
        assert authenticate(wire_to(broker), unsecured(iss=ISSUER, aud="other")).auth_bytes != b""
        assert authenticate(wire_to(broker), unsecured(iss=ISSUER, aud=AUDIENCE, exp=1)).auth_bytes != b""
        assert authenticate(wire_to(broker), provider.token()).auth_bytes != b""
    assert "every client can use any name" in caplog.text


JAAS = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
WRONG = [
    ({"sasl.oauthbearer.jwks.endpoint.url": ""}, "OAUTHBEARER needs the public keys of the identity provider"),
    ({"sasl.oauthbearer.jwks.endpoint.url": "http://keys.example/"}, "the value must begin with https://"),
    ({"sasl.oauthbearer.jwks.endpoint.url": "file:///nowhere/keys"}, "cannot load the public keys"),
    ({f"{PREFIX}sasl.server.callback.handler.class": "x.Y"}, "the handler must be"),
    ({"sasl.server.callback.handler.class": UNSECURED}, "HMB does not have this setting"),
    ({f"{PREFIX}sasl.jaas.config": f'{JAAS} unsecuredValidatorRequiredScope="x";'}, "unsecuredValidatorRequiredScope"),
    ({"sasl.oauthbearer.expected.issuers": "x"}, "did you mean 'sasl.oauthbearer.expected.issuer'"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_wrong_settings_stop_the_start(provider: Provider, wrong: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        BrokerServer(config=provider.settings() | wrong)


def test_settings_with_the_prefix_of_the_mechanism(provider: Provider) -> None:
    settings = provider.settings() | {
        "sasl.oauthbearer.expected.audience": "other",
        f"{PREFIX}sasl.oauthbearer.expected.audience": AUDIENCE,
        f"{PREFIX}sasl.jaas.config": f"{JAAS} ;",
    }
    with hmb.Broker(config=settings) as broker:
        assert authenticate(wire_to(broker), provider.token()).auth_bytes == b""


def test_wrong_settings_of_a_client_are_named() -> None:
    own = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
    with pytest.raises(SecuritySettingError, match=r"sasl.oauthbearer.token=\[hidden\]: is missing"):
        client_security(own)
    with pytest.raises(SecuritySettingError, match="the value must begin with https://"):
        client_security(own | {"sasl.oauthbearer.token.endpoint.url": "http://provider.example/token"})
    assert "abc" not in repr(client_security(own | {"sasl.oauthbearer.token": "abc"}))


MESSAGES = [
    (b"n,,\x01auth=Bearer good\x01\x01", OauthState.COMPLETE),
    (b"n,a=alice,\x01auth=bearer good\x01extension=1\x01\x01", OauthState.COMPLETE),
    (b"n,a=bob,\x01auth=Bearer good\x01\x01", OauthState.ACKNOWLEDGEMENT),
    (b"n,,\x01auth=Bearer bad\x01\x01", OauthState.ACKNOWLEDGEMENT),
    (b"n,,\x01auth=Basic good\x01\x01", OauthState.REFUSED),
    (b"n,,\x01auth=Bearer good\x01", OauthState.REFUSED),
    (b"n,,\x01\x01", OauthState.REFUSED),
    (b"y,,\x01auth=Bearer good\x01\x01", OauthState.REFUSED),
    (b"\xff", OauthState.REFUSED),
    (b"", OauthState.REFUSED),
]


@pytest.mark.parametrize(("message", "state"), MESSAGES)
def test_the_messages_of_the_mechanism(message: bytes, state: OauthState) -> None:
    def check(text: str) -> Token:
        if text != "good":
            raise TokenError("bad")
        return Token("alice", 60)

    exchange = OauthExchange(check)
    if state is OauthState.REFUSED:
        with pytest.raises(TokenError):
            exchange.receive(message)
    else:
        exchange.receive(message)
    assert exchange.state is state
    assert exchange.user == ("alice" if state is OauthState.COMPLETE else "")
