"""Tests of `hmb quotas`."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Hmb


def listed(run: Hmb, servers: str, *options: str) -> list[tuple[object, ...]]:
    rows = run("quotas", "list", "--json", *options, "-b", servers).stdout.splitlines()
    return [tuple(json.loads(row).values()) for row in rows]


@pytest.fixture(autouse=True)
def no_quotas(run: Hmb, servers: str) -> None:
    """Delete all quotas that earlier tests have set."""
    for user, client_id, ip in {row[:3] for row in listed(run, servers)}:
        names = (("user", "user", user), ("client-id", "client", client_id), ("ip", "ip", ip))
        options = [
            word
            for option, type, name in names
            if name is not None
            for word in ([f"--{type}-defaults"] if name == "<default>" else [f"--{option}", str(name)])
        ]
        run("quotas", "delete", *options, "-b", servers)


def test_a_quota_is_set_changed_and_deleted(run: Hmb, servers: str) -> None:
    alice = ("--user", "alice", "-b", servers)
    printed = run("quotas", "set", "producer_byte_rate=1048576", "request_percentage=12.5", *alice).stdout
    assert printed.splitlines() == [
        "set producer_byte_rate of the user alice to 1048576",
        "set request_percentage of the user alice to 12.5",
    ]
    run("quotas", "set", "producer_byte_rate=2000000", *alice)
    assert listed(run, servers) == [
        ("alice", None, None, "producer_byte_rate", 2_000_000),
        ("alice", None, None, "request_percentage", 12.5),
    ]
    assert "deleted request_percentage" in run("quotas", "delete", "request_percentage", *alice).stdout
    assert len(listed(run, servers)) == 1
    run("quotas", "delete", *alice)
    assert listed(run, servers) == []
    assert "has no quota" in run("quotas", "delete", *alice, exit_code=3).stderr


def test_each_option_becomes_a_part_of_the_entity(run: Hmb, servers: str) -> None:
    entities = (
        ("--user", "alice", "--client-id", "web"),
        ("--user", "alice", "--client-defaults"),
        ("--user-defaults", "--client-id", "web"),
        ("--user-defaults",),
        ("--client-defaults",),
    )
    for options in entities:
        run("quotas", "set", "consumer_byte_rate=7", *options, "-b", servers)
    for options in (("--ip", "192.0.2.1"), ("--ip-defaults",)):
        run("quotas", "set", "connection_creation_rate=1000", *options, "-b", servers)
    assert {row[:3] for row in listed(run, servers)} == {
        ("alice", "web", None),
        ("alice", "<default>", None),
        ("<default>", "web", None),
        ("<default>", None, None),
        (None, "<default>", None),
        (None, None, "192.0.2.1"),
        (None, None, "<default>"),
    }
    assert {row[1] for row in listed(run, servers, "--user", "alice")} == {"web", "<default>"}
    header = run("quotas", "list", "-b", servers).stdout.splitlines()[0]
    assert header.split() == ["user", "client_id", "ip", "quota", "value"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("set", "producer_byte_rate=1"), "an entity is required"),
        (("set", "--user", "a"), "Missing argument"),
        (("set", "producer_byte=1", "--user", "a"), "did you mean 'producer_byte_rate'?"),
        (("set", "producer_byte_rate", "--user", "a"), "is not NAME=NUMBER"),
        (("set", "producer_byte_rate=fast", "--user", "a"), "is not NAME=NUMBER"),
        (("set", "connection_creation_rate=1", "--user", "a"), "has no quota connection_creation_rate"),
        (("set", "producer_byte_rate=1", "--ip", "192.0.2.1"), "an IP address has no quota producer_byte_rate"),
        (("set", "producer_byte_rate=1", "--user", "a", "--user-defaults"), "combined with --user-defaults"),
        (("set", "producer_byte_rate=1", "--user", ""), "is empty"),
        (("set", "connection_creation_rate=1", "--ip", "192.0.2.1", "--user", "a"), "combined with options for users"),
        (("delete",), "an entity is required"),
    ],
)
def test_a_mistake_is_a_usage_error(run: Hmb, servers: str, arguments: tuple[str, ...], message: str) -> None:
    assert message in run("quotas", *arguments, "-b", servers, exit_code=2).stderr


def test_the_broker_refuses_a_value(run: Hmb, servers: str) -> None:
    refused = run("quotas", "set", "producer_byte_rate=0", "--user", "a", "-b", servers, exit_code=1)
    assert "must be greater than 0" in refused.stderr
