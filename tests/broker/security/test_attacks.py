"""Attacks that a security review found. Each test tries to log in, to read, to learn names, or to stop the broker."""

from __future__ import annotations

import base64
import logging
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import hmb
from hmb.broker import BrokerServer
from hmb.broker.security import tls, users
from hmb.broker.security.acls.authorizer import Access, Authorizer
from hmb.broker.security.acls.bindings import create_acls
from hmb.broker.security.acls.rule_guards import guard_by_rule
from hmb.broker.security.acls.rules import RULES
from hmb.broker.security.decoys import NUMBER, OWN_SHAPE
from hmb.broker.security.mapping_rules import MappingRule
from hmb.broker.security.scram import ScramExchange
from hmb.broker.security.store import SecurityState, SecurityStore
from hmb.broker.security.tokens import delegation
from hmb.broker.security.tokens.delegation import DelegationTokens, TokenSettings
from hmb.broker.security.tokens.public_keys import PublicKeys
from hmb.cli.shared.output import print_table
from hmb.client.connection import Connection
from hmb.client.security.scram import ScramLogin
from hmb.client.security.settings import client_security
from hmb.monitoring import http_server
from hmb.monitoring.ports import HttpAddress, MonitoringPorts
from hmb.printable import printable
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.connection import ClientConnection
from hmb.protocol.enums import AclOperation as Op
from hmb.protocol.enums import AclPatternType as Pattern
from hmb.protocol.enums import AclPermission as Permission
from hmb.protocol.enums import AclResourceType as Kind
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.api_versions import ApiVersionsRequest
from hmb.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from hmb.protocol.messages.describe_groups import DescribeGroupsRequest
from hmb.protocol.messages.fetch import FetchRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest
from hmb.protocol.topics import NO_TOPIC_ID
from hmb.security import scram
from hmb.security.ip_addresses import normal_address
from hmb.security.scram import ScramError, ScramMechanism
from hmb.storage.events import EventKind, EventLog
from tests.broker.security.provider import Provider
from tests.broker.security.test_acls import AUTHORIZER, acl
from tests.broker.security.test_acls import connect as connect_as
from tests.waiting import until

GroupOffsets = OffsetFetchRequest.OffsetFetchRequestGroup
SHA_256 = ScramMechanism.SCRAM_SHA_256
SECRET = "secret-plans"  # the name of a topic that the user alice must not see


@pytest.fixture(scope="module")
def server() -> Iterator[hmb.Broker]:
    config = AUTHORIZER | {"delegation.token.secret.key": "key-of-the-tokens"}
    with hmb.Broker(users={"admin": "x", "alice": "x"}, config=config) as broker:
        broker.create_topic("t")
        broker.create_topic(SECRET)
        with connect_as(broker, "admin") as connection:
            connection.send(FindCoordinatorRequest(key="g"), 3)  # The broker creates the topic __consumer_offsets.
        yield broker


@pytest.fixture
def broker(server: hmb.Broker) -> Iterator[hmb.Broker]:
    yield server
    server._server.context.security.change(lambda state: SecurityState(state.credentials))


def permit(broker: hmb.Broker, *acls: Any) -> None:
    create_acls(broker._server.context.security, list(acls))


def add_user(store: SecurityStore, name: str, salt: bytes, iterations: int = 4096, password: str = "x") -> None:
    salted = scram.salted_password(SHA_256, password, salt, iterations)
    assert users.alter(store, [], [users.upserted(name, SHA_256, iterations, salt, salted)]) == {}


# -- to get in


def test_a_user_that_is_removed_during_a_login_is_refused() -> None:
    """If an administrator removes a user during the user's login, the broker refuses this login."""
    store = SecurityStore()
    add_user(store, "alice", b"salt")
    exchange = ScramExchange(SHA_256, lambda kind, name: users.find(store, kind, name), no_tokens(store).find)
    client = ScramLogin("SCRAM-SHA-256", "alice", "x")
    final = client.receive(exchange.receive(client.first()))
    assert users.alter(store, [("alice", SHA_256)], []) == {}
    with pytest.raises(ScramError, match="changed or removed"):
        exchange.receive(final)
    assert not exchange.is_complete


def no_tokens(store: SecurityStore, now: Callable[[], int] = lambda: 0) -> DelegationTokens:
    return DelegationTokens(store, TokenSettings(secret_key="key"), now)


def test_a_token_that_expires_during_a_login_is_refused() -> None:
    now = [0]
    store = SecurityStore()
    tokens = no_tokens(store, lambda: now[0])
    token = tokens.create("User:alice", "User:alice", [], 60_000)
    exchange = ScramExchange(SHA_256, lambda kind, name: users.find(store, kind, name), tokens.find)
    password = base64.b64encode(tokens.hmac_of(token)).decode()
    client = ScramLogin("SCRAM-SHA-256", token.token_id, password, is_token=True)
    final = client.receive(exchange.receive(client.first()))
    now[0] = 60_001
    with pytest.raises(ScramError, match="has expired"):
        exchange.receive(final)
    assert not exchange.is_complete


def test_a_name_with_a_line_break_cannot_log_in(caplog: pytest.LogCaptureFixture) -> None:
    """The log contains the names of users. A line break would add a false line to the log."""
    certificate = {"subject": ((("commonName", "x\nfalse line"),),)}
    client: Any = SimpleNamespace(getpeercert=lambda: certificate)
    with pytest.raises(tls.CloseConnection, match="control character"):
        tls.certified_principal(client, [MappingRule()])
    with hmb.Broker(users={"a\nb": "x"}) as broker:
        security = client_security(broker.security | {"sasl.username": "a\nb"})
        with (
            pytest.raises(hmb.KafkaError, match="SASL_AUTHENTICATION_FAILED"),
            Connection("127.0.0.1", broker.listeners[0].port, security=security, timeout=10) as connection,
        ):
            connection.send(MetadataRequest(topics=[]))
    assert not [line for line in caplog.messages if "\n" in line]


# -- to read what is forbidden


def test_a_permitted_name_beside_a_forbidden_topic_id_shows_nothing(broker: hmb.Broker) -> None:
    permit(broker, acl(operation=Op.DESCRIBE))
    secret = broker._server.context.topics.find(SECRET, NO_TOPIC_ID).id
    with connect_as(broker, "alice") as connection:
        wanted = [
            MetadataRequest.MetadataRequestTopic(name="t", topic_id=secret),
            MetadataRequest.MetadataRequestTopic(name="not-yet-there", topic_id=uuid.uuid4()),
        ]
        found = connection.send(MetadataRequest(topics=wanted, allow_auto_topic_creation=True), 12).topics
        early = connection.send(MetadataRequest(topics=[wanted[0]]), 11).topics
    assert [(topic.error_code, topic.partitions) for topic in early] == [(ErrorCode.INVALID_REQUEST, [])]
    assert [topic.error_code for topic in found] == [ErrorCode.UNKNOWN_TOPIC_ID] * 2
    assert SECRET not in [topic.name for topic in found] and not any(topic.partitions for topic in found)
    assert "not-yet-there" not in broker.topics()


def heartbeat(broker: hmb.Broker, user: str, group: str, regex: str) -> Any:
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="m",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=[],
        subscribed_topic_regex=regex,
        topic_partitions=[],
    )
    with connect_as(broker, user) as connection:
        return connection.send(request, 1)


def test_a_regular_expression_matches_no_forbidden_topic(broker: hmb.Broker) -> None:
    """A member must not find out topic names by subscribing to regular expressions: to `a.*`, to `b.*`, and so on."""
    permit(broker, acl("g", kind=Kind.GROUP, pattern=Pattern.PREFIXED))
    answer = heartbeat(broker, "alice", "g1", "secret-.*")
    assert answer.error_code == 0 and answer.assignment.topic_partitions == []
    permit(broker, acl(SECRET, operation=Op.DESCRIBE))
    answer = heartbeat(broker, "alice", "g2", "secret-.*")
    assert len(answer.assignment.topic_partitions) == 1


def test_the_description_of_a_group_names_no_forbidden_topic(broker: hmb.Broker) -> None:
    assert heartbeat(broker, "admin", "g3", SECRET).error_code == 0
    permit(broker, acl("g3", kind=Kind.GROUP, operation=Op.DESCRIBE))
    for user, code, members in (("admin", 0, 1), ("alice", ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0)):
        with connect_as(broker, user) as connection:
            (group,) = connection.send(ConsumerGroupDescribeRequest(group_ids=["g3"]), 1).groups
        assert (group.error_code, len(group.members)) == (code, members)


def test_a_forbidden_topic_in_an_offset_fetch_has_an_error_and_no_offset(broker: hmb.Broker) -> None:
    """Without the error, a consumer would believe that no offset exists, and could begin to read at a wrong offset."""
    permit(broker, acl("g", kind=Kind.GROUP), acl(operation=Op.DESCRIBE))
    topics = [GroupOffsets.OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in ("t", SECRET)]
    with connect_as(broker, "alice") as connection:
        groups = [GroupOffsets(group_id="g", topics=topics)]
        (found,) = connection.send(OffsetFetchRequest(groups=groups), 8).groups
    codes = {topic.name: topic.partitions[0].error_code for topic in found.topics}
    assert codes == {"t": 0, SECRET: ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def test_a_fetch_session_shows_no_offset_after_the_right_is_taken_away(broker: hmb.Broker) -> None:
    permit(broker, acl(SECRET))
    partition = FetchRequest.FetchTopic.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topic = FetchRequest.FetchTopic(topic=SECRET, partitions=[partition])
    with connect_as(broker, "alice") as connection:
        begun = connection.send(FetchRequest(session_epoch=0, topics=[topic]), 12)
        assert begun.session_id
        broker._server.context.security.change(lambda state: SecurityState(state.credentials))
        broker.produce(SECRET, b"value")
        answer = connection.send(FetchRequest(session_id=begun.session_id, session_epoch=1, topics=[]), 12)
    (shown,) = answer.responses[0].partitions
    assert shown.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (shown.high_watermark, shown.last_stable_offset, shown.log_start_offset) == (-1, -1, -1)
    assert not shown.records


def test_a_forbidden_host_is_forbidden_in_each_form_of_its_address() -> None:
    """An ACL denies each form of an address: a listener on `::` can see 10.0.0.1 in its IPv6 form ::ffff:10.0.0.1."""
    for host, address in (("10.0.0.1", "::ffff:10.0.0.1"), ("2001:DB8:0:0:0:0:0:1", "2001:db8::1")):
        authorizer = Authorizer([], allows_without_acl=False)
        acls = [acl(), acl(host=host, permission=Permission.DENY)]
        authorizer.load(SecurityState(acls={each.id: each for each in acls}))
        assert not Access(authorizer, "User:alice", normal_address(address)).may(Op.READ, Kind.TOPIC, "t")
        assert Access(authorizer, "User:alice", "10.0.0.2").may(Op.READ, Kind.TOPIC, "t")


def test_a_connection_of_ipv4_to_a_listener_of_ipv6_has_an_address_of_ipv4() -> None:
    config = {"listeners": "PLAINTEXT://[::]:0", "allow.unauthenticated": "true"}
    with hmb.Broker(config=config) as broker, Connection("127.0.0.1", broker.listeners[0].port) as connection:
        connection.send(MetadataRequest(topics=[]))
        assert [client.host for _, client in broker._server.clients()] == ["127.0.0.1"]


# -- to learn what exists


def test_unknown_users_look_like_users_that_kafkas_tools_have_made() -> None:
    """A client cannot find out from the salt whether a user exists.

    The broker sends an unknown user a salt of the same form as an existing user's salt, for example a base-36 number.
    """
    store = SecurityStore()
    add_user(store, "alice", b"1vd5a6oolx0wpdd4gdbhnzmkyg", 8192)
    for name in ("nobody", "somebody"):
        decoy = users.find(store, SHA_256, name)
        assert NUMBER.fullmatch(decoy.salt) and decoy.iterations == 8192


def test_decoys_have_all_forms_that_credentials_have() -> None:
    store = SecurityStore()
    assert users.find(store, SHA_256, "nobody").iterations == OWN_SHAPE.iterations
    add_user(store, "alice", bytes(24), 4096)
    add_user(store, "bob", bytes(64), 8192)
    decoys = [users.find(store, SHA_256, f"nobody-{number}") for number in range(64)]
    assert {(len(each.salt), each.iterations) for each in decoys} == {(24, 4096), (64, 8192)}
    known = {name: users.find(store, SHA_256, name) for name in ("nobody-1", "nobody-2")}
    add_user(store, "carol", bytes(24), 4096)
    assert known == {name: users.find(store, SHA_256, name) for name in known}


def test_a_token_has_the_same_salt_as_an_unknown_token() -> None:
    now = [0]
    tokens = no_tokens(SecurityStore(), lambda: now[0])
    token = tokens.create("User:alice", "User:alice", [], 60_000)
    valid = tokens.find(SHA_256, token.token_id)
    now[0] = 60_001
    expired = tokens.find(SHA_256, token.token_id)
    assert (valid.owner, expired.owner) == ("alice", token.token_id)
    assert (valid.credential.salt, valid.credential.iterations) == (expired.credential.salt, 4096)
    assert valid.credential != expired.credential


# -- to stop the broker, or to make its log useless


def test_a_client_id_adds_no_line_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """A client can send ApiVersions before its login. A line break in its client id adds no line to the log."""
    caplog.set_level(logging.DEBUG)
    client = ClientConnection("x\n2026-01-01 denied: nothing\x1b[2J")
    parts = client.request(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
    with hmb.Broker(users={"admin": "x"}) as broker, socket.create_connection(_address(broker)) as connection:
        connection.sendall(b"".join(part for part in parts if isinstance(part, bytes)))
        assert connection.recv(4)
    lines = [line for line in caplog.messages if "2026-01-01" in line]
    assert lines and all(line.isprintable() for line in lines)


def _address(broker: hmb.Broker) -> tuple[str, int]:
    return broker.listeners[0].host, broker.listeners[0].port


def test_an_event_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    events = EventLog()
    events.add(EventKind.GROUP, "group a\nb: member \x1b[31mm is removed", logging.getLogger("hmb"))
    assert events.all()[0].text == caplog.messages[-1] == "group a\\nb: member \\x1b[31mm is removed"
    assert printable("grün") == "grün"


def test_a_table_of_a_command_contains_no_escape_sequence(capsys: pytest.CaptureFixture[str]) -> None:
    """A client can put escape sequences into its client id. A command must not print them on a user's terminal."""
    print_table(["client id"], [["x\x1b[2J"], ["y\nz"]])
    assert capsys.readouterr().out.splitlines() == ["client id", "x\\x1b[2J", "y\\nz"]


class CountedName(str):
    """A name that counts how often it is compared with another name."""

    comparisons = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        CountedName.comparisons += 1
        return str.__eq__(self, other)


def test_many_forbidden_groups_are_compared_only_a_few_times() -> None:
    """A request can name 16,000 groups. The broker must not compare every group with every other group."""
    access = Access(Authorizer([], allows_without_acl=False), "User:alice", "127.0.0.1")
    names = [CountedName(f"group-{number}") for number in range(300)]
    context: Any = SimpleNamespace(version=5)
    request = DescribeGroupsRequest(groups=list(names))
    answer = guard_by_rule(RULES[ApiKey.DESCRIBE_GROUPS], request, context, access, lambda *_: None)
    assert {each.error_code for each in answer.groups} == {ErrorCode.GROUP_AUTHORIZATION_FAILED}
    assert CountedName.comparisons < 10 * len(names)


def test_a_user_cannot_use_up_all_delegation_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delegation, "MAX_TOKENS_OF_REQUESTER", 2)
    tokens = no_tokens(SecurityStore())
    for _ in range(2):
        tokens.create("User:alice", "User:alice", [], 1000)
    with pytest.raises(KafkaError, match="has created 2 delegation tokens"):
        tokens.create("User:alice", "User:alice", [], 1000)
    assert tokens.create("User:bob", "User:bob", [], 1000)
    with pytest.raises(KafkaError, match="too long"):
        tokens.create("User:bob", "User:bob", [f"User:{'x' * 900}{number}" for number in range(50)], 1000)


def test_a_login_with_a_known_key_does_not_wait_for_the_provider(tmp_path: Path) -> None:
    """A login with a known key does not wait while the broker loads an unknown key from a slow identity provider."""
    provider = Provider(tmp_path)
    keys = PublicKeys(provider.file.as_uri(), refresh=0.0)
    found: list[object] = []
    with keys._lock:  # The test holds the lock, as a thread does while it loads keys.
        thread = threading.Thread(target=lambda: found.append(keys.find("key-1").key_id), daemon=True)
        thread.start()
        thread.join(20)
        assert found == ["key-1"]


@pytest.fixture
def ports(monkeypatch: pytest.MonkeyPatch) -> Iterator[MonitoringPorts]:
    monkeypatch.setattr(http_server, "MAX_OPEN", 3)
    with BrokerServer() as broker:
        ports = MonitoringPorts(metrics=HttpAddress("127.0.0.1", 0))
        ports.start(broker)
        try:
            yield ports
        finally:
            ports.stop()


def connect_http(ports: MonitoringPorts) -> socket.socket:
    assert ports.metrics is not None
    return socket.create_connection(("127.0.0.1", ports.metrics.port), timeout=30)


def metrics_are_served(ports: MonitoringPorts) -> bool:
    with connect_http(ports) as connection:
        try:
            connection.sendall(b"GET /healthz HTTP/1.0\r\nHost: localhost:%d\r\n\r\n" % connection.getpeername()[1])
            return connection.recv(100).startswith(b"HTTP/1.0 200")
        except OSError:
            return False


def test_silent_connections_do_not_use_up_the_descriptors(ports: MonitoringPorts) -> None:
    silent = [connect_http(ports) for _ in range(3)]
    with connect_http(ports) as refused:
        assert refused.recv(1) == b""
    for each in silent:
        each.close()
    until(lambda: metrics_are_served(ports))


def test_a_request_that_arrives_too_slowly_is_given_up(
    ports: MonitoringPorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "REQUEST_TIMEOUT", 0.1)
    with connect_http(ports) as slow:
        slow.sendall(b"GET /healthz HTTP/1.0\r\nX: ")
        assert slow.recv(1) == b""
    until(lambda: metrics_are_served(ports))
