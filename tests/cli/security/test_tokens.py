"""Tests of `hmb tokens`."""

from __future__ import annotations

import json

import hmb
from tests.cli.conftest import Hmb

USERS = {"alice": "alice-secret", "bob": "bob-secret"}
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


def place(broker: hmb.Broker, jaas: str) -> list[str]:
    settings = ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=SCRAM-SHA-256", f"sasl.jaas.config={jaas}")
    return ["-b", broker.bootstrap_servers, *(word for setting in settings for word in ("-X", setting))]


def test_a_token_is_created_listed_renewed_used_and_expired(run: Hmb) -> None:
    with hmb.Broker(users=USERS, config={"delegation.token.secret.key": "key"}) as broker:
        alice = place(broker, f'{MODULE} required username="alice" password="alice-secret";')
        made = json.loads(run("tokens", "create", "--renewer", "User:bob", "--json", *alice).stdout)
        assert (made["owner"], made["renewers"]) == ("User:alice", "User:bob")
        listed = run("tokens", "list", *alice).stdout
        assert made["token_id"] in listed and made["hmac"] not in listed
        assert run("tokens", "list", "--owner", "User:carol", "--json", *alice).stdout.strip() in ("", "[]")
        token = place(
            broker,
            f'{MODULE} required username="{made["token_id"]}" password="{made["hmac"]}" tokenauth="true";',
        )
        assert "created" in run("topics", "create", "t", *token).stdout
        assert "not allowed" in run("tokens", "create", *token, exit_code=1).stderr.lower()
        renewed = run("tokens", "renew", "--hmac", made["hmac"], "--period-ms", "60000", *alice).stdout
        assert renewed.startswith("the token expires at 20")
        assert "the token has expired" in run("tokens", "expire", "--hmac", made["hmac"], *alice).stdout
        assert "no such delegation token" in run("tokens", "renew", "--hmac", made["hmac"], *alice, exit_code=1).stderr


def test_mistakes_are_usage_errors(run: Hmb) -> None:
    assert "form User:NAME" in run("tokens", "create", "--renewer", "bob", exit_code=2).stderr
    assert "base64" in run("tokens", "renew", "--hmac", "%", exit_code=2).stderr
