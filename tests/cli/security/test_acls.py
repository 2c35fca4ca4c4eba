"""Tests of `hmb acls` with a broker that has users and an authorizer."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import hmb
from tests.cli.conftest import Hmb

ALICE = ("--allow-principal", "User:alice")
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
}


@pytest.fixture(scope="module")
def secured() -> Iterator[hmb.Broker]:
    with hmb.Broker(users={"admin": "x", "alice": "x"}, config=AUTHORIZER) as broker:
        broker.create_topic("t")
        yield broker


def place(broker: hmb.Broker, user: str) -> list[str]:
    settings = broker.security | {"sasl.username": user}
    return [
        "-b",
        broker.bootstrap_servers,
        *(word for name, value in settings.items() for word in ("-X", f"{name}={value}")),
    ]


@pytest.fixture
def admin(secured: hmb.Broker) -> Iterator[list[str]]:
    """Yield the options of the user admin. Remove all ACLs after the test."""
    yield place(secured, "admin")
    with hmb.Admin(secured.bootstrap_servers, security=secured.security | {"sasl.username": "admin"}) as client:
        client.delete_acls([hmb.client.admin.AclBindingFilter()])


def listed(run: Hmb, admin: list[str], *options: str) -> list[tuple[str, ...]]:
    rows = [json.loads(line) for line in run("acls", "list", "--json", *options, *admin).stdout.splitlines()]
    return [tuple(row.values()) for row in rows]


def rights(run: Hmb, admin: list[str]) -> set[tuple[str, str, str]]:
    return {(kind, name, operation) for kind, name, _, _, _, operation, _ in listed(run, admin)}


def test_an_added_acl_applies_until_it_is_removed(run: Hmb, secured: hmb.Broker, admin: list[str]) -> None:
    alice = place(secured, "alice")
    assert run("topics", "list", *alice).stdout == ""
    options = ("--topic", "t", *ALICE, "--operation", "Describe")
    added = run("acls", "add", *options, *admin)
    assert added.stdout == "added ALLOW User:alice from *: DESCRIBE on TOPIC t\n"
    run("acls", "add", *options, *admin)
    assert listed(run, admin) == [("TOPIC", "t", "LITERAL", "User:alice", "*", "DESCRIBE", "ALLOW")]
    assert run("topics", "list", *alice).stdout == "t\n"
    removed = run("acls", "remove", "--force", "--json", *options, *admin)
    assert json.loads(removed.stdout)["removed"] is True
    assert run("topics", "list", *alice).stdout == ""
    assert "no ACL matches" in run("acls", "remove", "--force", *options, *admin, exit_code=3).stderr


def test_the_table_has_a_line_for_each_acl(run: Hmb, admin: list[str]) -> None:
    run("acls", "add", "--cluster", *ALICE, "--operation", "DESCRIBE_CONFIGS", *admin)
    header, line = run("acls", "list", *admin).stdout.splitlines()
    assert header.split()[:3] == ["resource_type", "resource_name", "pattern_type"]
    assert line.split() == ["CLUSTER", "kafka-cluster", "LITERAL", "User:alice", "*", "DESCRIBE_CONFIGS", "ALLOW"]


def test_each_option_becomes_a_part_of_the_acl(run: Hmb, admin: list[str]) -> None:
    hosts = ("--allow-host", "10.0.0.1", "--deny-host", "10.0.0.2")
    prefix = ("--topic", "ord", "--resource-pattern-type", "prefixed")
    run("acls", "add", *prefix, *ALICE, "--deny-principal", "User:bob", *hosts, *admin)
    allowed = ("TOPIC", "ord", "PREFIXED", "User:alice", "10.0.0.1", "ALL", "ALLOW")
    denied = ("TOPIC", "ord", "PREFIXED", "User:bob", "10.0.0.2", "ALL", "DENY")
    assert listed(run, admin) == [allowed, denied]
    assert listed(run, admin, "--principal", "User:bob") == [denied]
    assert listed(run, admin, "--topic", "ord") == []
    assert listed(run, admin, *prefix) == [allowed, denied]
    assert listed(run, admin, "--topic", "orders", "--resource-pattern-type", "match") == [allowed, denied]
    assert listed(run, admin, "--group", "ord", "--resource-pattern-type", "any") == []


def test_two_phase_commit_is_an_operation(run: Hmb, admin: list[str]) -> None:
    """`hmb acls` accepts the operation TwoPhaseCommit.

    Before a bug was fixed, the broker did not know the number of this operation, because the number was defined in
    another enum.
    """
    run("acls", "add", "--transactional-id", "x", *ALICE, "--operation", "TwoPhaseCommit", *admin)
    assert rights(run, admin) == {("TRANSACTIONAL_ID", "x", "TWO_PHASE_COMMIT")}


def test_the_short_form_for_a_producer(run: Hmb, admin: list[str]) -> None:
    options = ("--producer", "--idempotent", "--topic", "t", "--transactional-id", "x", *ALICE)
    run("acls", "add", *options, *admin)
    assert rights(run, admin) == {
        *(("TOPIC", "t", operation) for operation in ("WRITE", "DESCRIBE", "CREATE")),
        *(("TRANSACTIONAL_ID", "x", operation) for operation in ("WRITE", "DESCRIBE")),
        ("CLUSTER", "kafka-cluster", "IDEMPOTENT_WRITE"),
    }
    run("acls", "remove", "--force", *options, *admin)
    assert listed(run, admin) == []


def test_the_short_forms_suffice_for_a_producer_and_a_consumer(run: Hmb, secured: hmb.Broker, admin: list[str]) -> None:
    alice = place(secured, "alice")
    run("produce", "t", *alice, stdin="denied\n", exit_code=1)
    run("acls", "add", "--producer", "--consumer", "--topic", "t", "--group", "g", *ALICE, *admin)
    assert rights(run, admin) == {
        *(("TOPIC", "t", operation) for operation in ("WRITE", "DESCRIBE", "CREATE", "READ")),
        ("GROUP", "g", "READ"),
    }
    run("produce", "t", *alice, stdin="permitted\n")
    assert run("consume", "t", "--group", "g", "--from-beginning", "-n", "1", *alice).stdout == "permitted\n"


def test_remove_asks_first(run: Hmb, admin: list[str]) -> None:
    run("acls", "add", "--topic", "t", *ALICE, "--operation", "READ", "--operation", "WRITE", *admin)
    remove = ("acls", "remove", "--topic", "t", *admin)
    for answer in ("n\n", ""):
        refused = run(*remove, stdin=answer, exit_code=1)
        assert "Remove 2 ACLs?" in refused.stderr and "removed nothing" in refused.stderr
        assert "ALLOW User:alice from *: READ on TOPIC t" in refused.stderr
    assert len(listed(run, admin)) == 2
    assert len(run(*remove, "--operation", "READ", stdin="y\n").stdout.splitlines()) == 1
    assert len(run(*remove, stdin="yes\n").stdout.splitlines()) == 1
    assert listed(run, admin) == []
    assert "no ACL matches" in run(*remove, exit_code=3).stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["add", *ALICE], "a resource is required"),
        (["add", "--topic", "t"], "a principal is required"),
        (["add", "--topic", "", *ALICE], "the name is empty"),
        (["add", "--topic", "t", "--allow-principal", "alice"], "'alice' is not a principal; write User:alice"),
        (["add", "--topic", "t", *ALICE, "--operation", "fly"], "'fly' is none of ALL, READ"),
        (["add", "--topic", "t", *ALICE, "--operation", "any"], "'any' is none of"),
        (["add", "--group", "g", *ALICE, "--operation", "write"], "an ACL of a GROUP cannot contain WRITE; use ALL"),
        (["add", "--topic", "t", *ALICE, "--resource-pattern-type", "match"], "'match' is none of LITERAL, PREFIXED"),
        (["add", "--cluster", *ALICE, "--resource-pattern-type", "prefixed"], "--cluster cannot be combined with"),
        (["add", "--topic", "t", *ALICE, "--deny-host", "10.0.0.1"], "--deny-host needs --deny-principal"),
        (["add", "--topic", "t", *ALICE, "--idempotent"], "--idempotent needs --producer"),
        (["add", "--producer", *ALICE, "--transactional-id", "x"], "--producer needs --topic"),
        (["add", "--producer", *ALICE, "--topic", "t", "--group", "g"], "--producer cannot be combined with --group"),
        (["add", "--consumer", *ALICE, "--topic", "t"], "--consumer needs --group"),
        (["add", "--consumer", *ALICE, "--topic", "t", "--group", "g", "--cluster"], "combined with --cluster"),
        (
            ["add", "--producer", *ALICE, "--topic", "t", "--operation", "read"],
            "--producer cannot be combined with --operation",
        ),
        (["remove", "--force"], "a resource is required"),
        (["remove", "--force", "--producer", "--topic", "t"], "--producer needs --allow-principal"),
    ],
)
def test_wrong_options_are_one_line(run: Hmb, options: list[str], message: str) -> None:
    stderr = run("acls", *options, exit_code=2).stderr
    assert message in stderr and stderr.count("\n") == 1


@pytest.mark.parametrize(
    "options",
    [["list"], ["add", *ALICE, "--topic", "t"], ["remove", "--topic", "t"], ["remove", "--force", "--cluster"]],
)
def test_a_user_without_rights_is_denied(run: Hmb, secured: hmb.Broker, options: list[str]) -> None:
    stderr = run("acls", *options, *place(secured, "alice"), exit_code=1).stderr
    assert "CLUSTER_AUTHORIZATION_FAILED" in stderr and stderr.count("\n") == 1


def test_a_broker_without_an_authorizer_has_no_acls(run: Hmb, servers: str) -> None:
    for options in (["list"], ["add", *ALICE, "--producer", "--topic", "t"], ["remove", "--topic", "t", "--force"]):
        stderr = run("acls", *options, "-b", servers, exit_code=1).stderr
        assert "No Authorizer is configured" in stderr and stderr.count("\n") == 1
