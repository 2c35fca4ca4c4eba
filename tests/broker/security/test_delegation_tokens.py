"""Tests of delegation tokens: logins, expiry, the users who may create, renew and see tokens, and the stored file."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hmb
from hmb.broker.network import connection_login
from hmb.broker.security.store import SecurityStore
from hmb.broker.security.tokens.delegation import DelegationTokens, TokenSettings
from hmb.client.admin import AclBinding, DelegationToken
from hmb.client.connection import Connection
from hmb.client.security.settings import client_security
from hmb.protocol.enums import AclOperation, AclResourceType
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.security.scram import ScramMechanism
from hmb.storage.state.manifest import Manifest

SECRET = {"delegation.token.secret.key": "key-of-the-tokens"}
USERS = {name: f"{name}-secret" for name in ("admin", "alice", "bob", "carol")}
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_login, "REFUSAL_DELAY", 0.0)


@pytest.fixture
def broker() -> Iterator[hmb.Broker]:
    with hmb.Broker(users=USERS, config=SECRET) as broker:
        yield broker


def login(name: str, password: str = "", **options: str) -> dict[str, str]:
    words = {"username": name, "password": password or f"{name}-secret"} | options
    line = " ".join(f'{option}="{value}"' for option, value in words.items())
    jaas = f"{MODULE} required {line};"
    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": jaas}


def with_token(token: DelegationToken, mechanism: str = "SCRAM-SHA-256") -> dict[str, str]:
    return login(token.token_id, token.hmac, tokenauth="true") | {"sasl.mechanism": mechanism}


def admin_of(broker: hmb.Broker, security: dict[str, str]) -> hmb.Admin:
    return hmb.Admin(broker.bootstrap_servers, security=security)


def refused(code: ErrorCode) -> Any:
    return pytest.raises(hmb.KafkaError, match=code.name)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_client_logs_in_with_a_token_under_the_name_of_its_owner(broker: hmb.Broker, mechanism: str) -> None:
    with admin_of(broker, login("alice")) as alice:
        token = alice.create_token(renewers=["User:bob"], max_lifetime_ms=60_000)
    assert (token.owner, token.requester, token.renewers) == ("User:alice", "User:alice", ["User:bob"])
    assert token.max_time - token.issue_time == 60_000 and token.expiry_time == token.max_time
    with hmb.Producer(broker.bootstrap_servers, security=with_token(token, mechanism)) as producer:
        producer.send("t", b"value").result()
        assert "User:alice" in {client.principal for _, client in broker._server.clients()}
    wrong = token._replace(hmac=base64.b64encode(bytes(64)).decode())
    unknown = token._replace(token_id="unknown")
    for each in (login(token.token_id, token.hmac), with_token(wrong), with_token(unknown)):
        with admin_of(broker, each) as admin, refused(ErrorCode.SASL_AUTHENTICATION_FAILED):
            admin.list_topics()


def test_a_session_ends_when_the_token_expires(broker: hmb.Broker) -> None:
    with admin_of(broker, login("alice")) as alice:
        token = alice.create_token(max_lifetime_ms=60_000)
    with Connection("127.0.0.1", broker.listeners[0].port, security=client_security(with_token(token))) as client:
        client.send(MetadataRequest(topics=[]))
        (lifetime,) = [each.login._session for _, each in broker._server.clients() if each.login]
        assert lifetime is not None and 0 < lifetime <= 60


def test_renewers_and_owners_renew_and_expire_tokens(broker: hmb.Broker) -> None:
    with (
        admin_of(broker, login("alice")) as alice,
        admin_of(broker, login("bob")) as bob,
        admin_of(broker, login("carol")) as carol,
    ):
        token = alice.create_token(renewers=["User:bob"], max_lifetime_ms=3_600_000)
        assert token.issue_time < bob.expire_token(token.hmac, 1_000_000) < token.expiry_time
        assert bob.renew_token(token.hmac, 2_000_000) < token.max_time
        assert alice.renew_token(token.hmac) == token.max_time
        with refused(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH):
            carol.renew_token(token.hmac)
        with refused(ErrorCode.DELEGATION_TOKEN_NOT_FOUND):
            alice.renew_token(base64.b64encode(b"x" * 64).decode())
        assert alice.expire_token(token.hmac) == -1
        with refused(ErrorCode.DELEGATION_TOKEN_NOT_FOUND):
            alice.expire_token(token.hmac)
        with admin_of(broker, with_token(token)) as late, refused(ErrorCode.SASL_AUTHENTICATION_FAILED):
            late.list_topics()


def test_some_connections_may_not_use_tokens(broker: hmb.Broker) -> None:
    with admin_of(broker, login("alice")) as alice:
        token = alice.create_token()
        with refused(ErrorCode.INVALID_PRINCIPAL_TYPE):
            alice.create_token(renewers=["Group:x"])
    with admin_of(broker, with_token(token)) as delegated, refused(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED):
        delegated.create_token()
    with hmb.Broker(config=SECRET) as plain, hmb.Admin(plain.bootstrap_servers) as admin:
        for call in (admin.create_token, admin.list_tokens, lambda: admin.renew_token("AA==")):
            with refused(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED):
                call()
    with hmb.Broker(users=USERS) as without, admin_of(without, login("alice")) as admin:
        for call in (admin.create_token, admin.list_tokens, lambda: admin.expire_token("AA==")):
            with refused(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED):
                call()


def test_acls_decide_who_creates_and_sees_tokens_of_others() -> None:
    config = SECRET | {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    with (
        hmb.Broker(users=USERS, config=config) as broker,
        admin_of(broker, login("admin")) as admin,
        admin_of(broker, login("alice")) as alice,
        admin_of(broker, login("bob")) as bob,
    ):
        own = alice.create_token()
        for_bob = admin.create_token(owner="User:bob")
        assert (for_bob.owner, for_bob.requester) == ("User:bob", "User:admin")
        with refused(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED):
            alice.create_token(owner="User:bob")

        def seen(by: hmb.Admin) -> set[str]:
            return {token.token_id for token in by.list_tokens()}

        assert seen(admin) == {own.token_id, for_bob.token_id}
        assert (seen(alice), seen(bob)) == ({own.token_id}, {for_bob.token_id})
        assert [token.token_id for token in admin.list_tokens(["User:bob"])] == [for_bob.token_id]
        assert alice.list_tokens([]) == []
        kind = AclResourceType
        by_id = AclBinding(kind.DELEGATION_TOKEN, own.token_id, "User:bob", AclOperation.DESCRIBE)
        by_owner = AclBinding(kind.USER, "User:bob", "User:alice", AclOperation.DESCRIBE_TOKENS)
        creator = AclBinding(kind.USER, "User:bob", "User:alice", AclOperation.CREATE_TOKENS)
        assert set(admin.create_acls([by_id, by_owner, creator]).values()) == {None}
        assert seen(bob) == seen(alice) == {own.token_id, for_bob.token_id}
        assert alice.create_token(owner="User:bob").owner == "User:bob"


def tokens_in(directory: Path, now: list[int]) -> DelegationTokens:
    settings = TokenSettings(secret_key="key", max_lifetime=1000, expiry_time=400)
    return DelegationTokens(SecurityStore(directory, Manifest(directory)), settings, lambda: now[0])


def test_tokens_survive_a_restart_and_are_removed_when_they_have_expired(tmp_path: Path) -> None:
    now = [5000]
    token = tokens_in(tmp_path, now).create("User:a", "User:a", [], -1)
    assert (token.expiration_timestamp, token.max_timestamp) == (5400, 6000)
    tokens = tokens_in(tmp_path, now)
    assert [each.token_id for each in tokens.all()] == [token.token_id]
    content = (tmp_path / "security.checkpoint").read_bytes()
    assert tokens.hmac_of(token) not in content and token.token_id.encode() in content
    credential = tokens.find(ScramMechanism.SCRAM_SHA_256, token.token_id)
    assert (credential.owner, credential.lifetime) == ("a", 0.4)
    now[0] = 5300
    assert tokens.renew(tokens.hmac_of(token), "User:a", -1) == 5700
    now[0] = 5650
    assert tokens.renew(tokens.hmac_of(token), "User:a", 999) == 6000
    now[0] = 6001
    with refused(ErrorCode.DELEGATION_TOKEN_EXPIRED):
        tokens.renew(tokens.hmac_of(token), "User:a", -1)
    decoy = tokens.find(ScramMechanism.SCRAM_SHA_256, token.token_id)
    assert decoy.credential.stored_key != credential.credential.stored_key and decoy.lifetime == 0
    tokens.remove_expired()
    assert tokens_in(tmp_path, now).all() == []


def test_the_secret_key_and_the_hmac_are_never_shown(broker: hmb.Broker) -> None:
    with admin_of(broker, login("alice")) as alice:
        token = alice.create_token()
        assert token.hmac not in repr(token)
    assert "key-of-the-tokens" not in repr(vars(broker._server.context.tokens))
