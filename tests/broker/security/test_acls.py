"""Tests of ACLs: the rules of the authorizer, and the requests of clients with and without the required ACLs."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import hmb
from hmb.broker.handlers import HANDLERS
from hmb.broker.security.acls.authorizer import AccessRequest, Authorizer
from hmb.broker.security.acls.bindings import create_acls, new_acl
from hmb.broker.security.acls.guards import guard_of
from hmb.broker.security.acls.rules import OPEN
from hmb.broker.security.metadata_records import AccessControlEntryRecord
from hmb.broker.security.store import SecurityState
from hmb.client.connection import Connection
from hmb.client.security.settings import client_security
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.enums import AclOperation as Op
from hmb.protocol.enums import AclPatternType as Pattern
from hmb.protocol.enums import AclPermission as Permission
from hmb.protocol.enums import AclResourceType as Kind
from hmb.protocol.errors import ErrorCode
from hmb.protocol.fields import version_range
from hmb.protocol.messages import api_name, request_class
from hmb.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from hmb.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from hmb.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, TaskIds
from hmb.protocol.schema import Struct
from tests.coordinator.streams.driver import word_count
from tests.waiting import until

DENIED = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
}


def acl(
    name: str = "t",
    operation: Op = Op.READ,
    kind: Kind = Kind.TOPIC,
    permission: Permission = Permission.ALLOW,
    pattern: Pattern = Pattern.LITERAL,
    principal: str = "User:alice",
    host: str = "*",
) -> AccessControlEntryRecord:
    return new_acl(kind, pattern, name, principal, host, operation, permission)


def decides(*acls: AccessControlEntryRecord, name: str = "t", operation: Op = Op.READ, without: bool = False) -> bool:
    authorizer = Authorizer({"User:admin"}, allows_without_acl=without)
    authorizer.load(SecurityState(acls={each.id: each for each in acls}))
    return authorizer.allows(AccessRequest("User:alice", "127.0.0.1", operation, Kind.TOPIC, name))


def test_the_authorizer_decides_as_kafkas_does() -> None:
    assert not decides()
    assert decides(without=True)
    assert decides(acl())
    assert not decides(acl("other"))
    assert not decides(acl(principal="User:bob"), without=True)
    assert decides(acl(principal="User:*"))
    assert decides(acl("*"))
    assert decides(acl("ord", pattern=Pattern.PREFIXED), name="orders")
    assert not decides(acl("orders", pattern=Pattern.PREFIXED), name="ord")
    assert decides(acl(host="127.0.0.1")) and not decides(acl(host="10.0.0.1"))
    assert not decides(acl(), acl(permission=Permission.DENY))
    assert not decides(acl(), acl("*", permission=Permission.DENY, operation=Op.ALL))
    assert decides(acl(operation=Op.ALL))


@pytest.mark.parametrize("operation", [Op.READ, Op.WRITE, Op.DELETE, Op.ALTER])
def test_an_operation_includes_describe_only_where_it_is_permitted(operation: Op) -> None:
    assert decides(acl(operation=operation), operation=Op.DESCRIBE)
    denied = acl(operation=operation, permission=Permission.DENY)
    assert decides(acl(operation=Op.DESCRIBE), denied, operation=Op.DESCRIBE)


def test_each_api_has_a_guard() -> None:
    for api in HANDLERS:
        assert guard_of(api)
    with pytest.raises(KeyError):
        guard_of(ApiKey.VOTE)


@pytest.fixture(scope="module")
def broker() -> Iterator[hmb.Broker]:
    with hmb.Broker(users={"admin": "x", "alice": "x"}, config=AUTHORIZER) as broker:
        broker.create_topic("t")
        yield broker


def as_user(broker: hmb.Broker, name: str) -> dict[str, str]:
    return broker.security | {"sasl.username": name}


def connect(broker: hmb.Broker, name: str) -> Connection:
    security = client_security(as_user(broker, name))
    return Connection("127.0.0.1", broker.listeners[0].port, security=security, timeout=10)


def sample(struct: type[Struct], version: int) -> Any:
    """Return a message that names one topic, one group, one transactional id and one partition."""
    values: dict[str, Any] = {}
    for name, field in struct.fields.items():
        if (
            field.tag is not None
            or version not in version_range(field.versions)
            or name in ("forgotten_topics_data", "cursor", "records", "rack_id", "topic_names")
        ):
            continue
        if field.item is not None and field.item.struct is not None:
            values[name] = [sample(field.item.struct, version)]
        elif field.item is not None:
            values[name] = ["t"] if field.item.kind == "string" else [0] if "int" in field.item.kind else []
        elif field.kind == "string" and name not in ("group_instance_id", "instance_id", "server_assignor"):
            values[name] = "t"
    if "resource_type" in struct.fields and "resource_name" in struct.fields:
        values["resource_type"] = 2
    return struct(**values)


def codes(message: Any) -> set[int]:
    """Return all error codes in a response."""
    found = set[int]()
    for name, field in message.fields.items():
        value = getattr(message, name)
        if name in ("error_code", "partition_error_code"):
            found.add(value)
        elif field.item is not None and field.item.struct is not None:
            for each in value or ():
                found |= codes(each)
    return found


FILTERED = {ApiKey.LIST_GROUPS, ApiKey.LIST_TRANSACTIONS, ApiKey.DESCRIBE_DELEGATION_TOKEN}
BROKERS_ONLY = {ApiKey.ADD_PARTITIONS_TO_TXN}
APIS = [api for api in HANDLERS if api not in OPEN | FILTERED | {ApiKey.DESCRIBE_CLUSTER}]


def newest(api: ApiKey) -> int:
    request = request_class(api)
    by_name = {
        ApiKey.PRODUCE: 12,
        ApiKey.FETCH: 12,
        ApiKey.OFFSET_COMMIT: 9,
        ApiKey.OFFSET_FETCH: 9,
        ApiKey.METADATA: 9,
    }
    return by_name.get(api, 3 if api in BROKERS_ONLY else request.versions[-1])


@pytest.mark.parametrize("api", APIS, ids=api_name)
def test_a_client_without_acls_is_denied_by_each_api(broker: hmb.Broker, api: ApiKey) -> None:
    with connect(broker, "alice") as connection:
        response = connection.send(sample(request_class(api), newest(api)), newest(api))
    found = codes(response)
    assert found - {0} <= DENIED, (found, response)
    assert found & DENIED, response


def test_a_permitted_client_produces_fetches_and_commits(broker: hmb.Broker) -> None:
    store = broker._server.context.security
    with hmb.Admin(broker.bootstrap_servers, security=as_user(broker, "alice")) as admin:
        assert admin.list_topics() == []
    rights = [acl(operation=Op.WRITE), acl(operation=Op.READ), acl("g", kind=Kind.GROUP)]
    create_acls(store, rights)
    try:
        servers, security = broker.bootstrap_servers, as_user(broker, "alice")
        with hmb.Producer(servers, security=security) as producer:
            producer.send("t", b"value").result()
            with pytest.raises(hmb.KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
                producer.send("other", b"value").result()
        with hmb.Consumer(servers, "t", group="g", security=security) as consumer:
            assert [record.value for record in consumer.poll(timeout=10)] == [b"value"]
            consumer.commit()
        with (
            hmb.Consumer(servers, "t", group="other", security=security) as consumer,
            pytest.raises(hmb.KafkaError, match="GROUP_AUTHORIZATION_FAILED"),
        ):
            consumer.poll(timeout=5)
        with hmb.Admin(servers, security=security) as admin:
            assert [topic.name for topic in admin.list_topics()] == ["t"]
        assert "other" not in broker.topics()
    finally:
        store.change(lambda state: SecurityState(state.credentials))


def test_a_forbidden_topic_looks_like_one_that_does_not_exist(broker: hmb.Broker) -> None:
    with connect(broker, "alice") as connection:
        answers = []
        for name in ("t", "missing"):
            wanted = MetadataRequest.MetadataRequestTopic(name=name)
            (topic,) = connection.send(MetadataRequest(topics=[wanted]), 12).topics
            answers.append((topic.error_code, topic.partitions, topic.topic_id))
        assert answers[0] == answers[1]
        topic_id = broker._server.context.topics.find("t", uuid.UUID(int=0)).id
        for id in (topic_id, uuid.uuid4()):
            wanted = MetadataRequest.MetadataRequestTopic(name=None, topic_id=id)
            (topic,) = connection.send(MetadataRequest(topics=[wanted]), 12).topics
            assert (topic.error_code, topic.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)


def test_find_coordinator_refuses_only_the_forbidden_groups(broker: hmb.Broker) -> None:
    store = broker._server.context.security
    create_acls(store, [acl("g", kind=Kind.GROUP)])
    try:
        with connect(broker, "alice") as connection:
            before = [connection.send(FindCoordinatorRequest(key=key), 3).error_code for key in ("g", "other")]
            found = connection.send(FindCoordinatorRequest(coordinator_keys=["g", "other"]), 4).coordinators
    finally:
        store.change(lambda state: SecurityState(state.credentials))
    assert before == [ErrorCode.NONE, ErrorCode.GROUP_AUTHORIZATION_FAILED]
    assert {each.key: each.error_code for each in found} == {"g": before[0], "other": before[1]}


@contextmanager
def acls(broker: hmb.Broker, *wanted: AccessControlEntryRecord) -> Iterator[None]:
    """Create ACLs, and delete all ACLs at the end."""
    store = broker._server.context.security
    create_acls(store, wanted)
    try:
        yield
    finally:
        store.change(lambda state: SecurityState(state.credentials))


def join(group: str, **subscription: Any) -> ConsumerGroupHeartbeatRequest:
    """Return the first heartbeat of a member (KIP-848)."""
    options = {"rebalance_timeout_ms": 10_000, "topic_partitions": [], **subscription}
    return ConsumerGroupHeartbeatRequest(group_id=group, member_id=str(uuid.uuid4()), **options)


@pytest.fixture
def secret(broker: hmb.Broker) -> Iterator[str]:
    broker.create_topic("secret")
    yield "secret"
    broker.delete_topic("secret")


def test_a_description_hides_a_group_that_reads_a_hidden_topic(broker: hmb.Broker, secret: str) -> None:
    with connect(broker, "admin") as connection:
        connection.send(join("described", subscribed_topic_names=[secret]), 1)
    request = ConsumerGroupDescribeRequest(group_ids=["described"], include_authorized_operations=True)
    described = acl("described", Op.DESCRIBE, Kind.GROUP)
    with acls(broker, described), connect(broker, "alice") as connection:
        (hidden,) = connection.send(request, 1).groups
    with acls(broker, described, acl(secret, Op.DESCRIBE)), connect(broker, "alice") as connection:
        (visible,) = connection.send(request, 1).groups
    assert (hidden.error_code, hidden.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])
    assert (visible.error_code, len(visible.members)) == (ErrorCode.NONE, 1)
    assert visible.authorized_operations == 1 << Op.DESCRIBE


def share_offsets(connection: Connection, topics: list[str] | None) -> dict[str, int]:
    """Return the error codes of topics that a share group reads. None means all topics."""
    kind = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    topic = kind.DescribeShareGroupOffsetsRequestTopic
    named = None if topics is None else [topic(topic_name=name, partitions=[0]) for name in topics]
    request = DescribeShareGroupOffsetsRequest(groups=[kind(group_id="shared", topics=named)])
    (group,) = connection.send(request, 1).groups
    return {each.topic_name: each.partitions[0].error_code for each in group.topics}


def test_the_offsets_of_a_share_group_hide_forbidden_topics(broker: hmb.Broker, secret: str) -> None:
    """If the client names a forbidden topic, this topic gets an error.

    If the client requests all topics, the response does not contain the forbidden topic.
    """
    names, member = [secret, "t"], str(uuid.uuid4())
    with connect(broker, "admin") as connection:
        connection.send(ShareGroupHeartbeatRequest(group_id="shared", member_id=member, subscribed_topic_names=names))
        until(lambda: len(share_offsets(connection, None)) == 2)
    rights = acl("shared", Op.DESCRIBE, Kind.GROUP), acl("t", Op.DESCRIBE)
    with acls(broker, *rights), connect(broker, "alice") as connection:
        assert share_offsets(connection, names) == {secret: ErrorCode.TOPIC_AUTHORIZATION_FAILED, "t": ErrorCode.NONE}
        assert share_offsets(connection, None) == {"t": ErrorCode.NONE}


def test_the_settings_of_a_new_topic_need_a_permission_of_their_own(broker: hmb.Broker) -> None:
    request = CreateTopicsRequest(validate_only=True)
    request.topics = [CreateTopicsRequest.CreatableTopic(name="new", num_partitions=3, replication_factor=1)]
    found = []
    for rights in ([Op.CREATE], [Op.CREATE, Op.DESCRIBE_CONFIGS]):
        with acls(broker, *(acl("new", each) for each in rights)), connect(broker, "alice") as connection:
            (topic,) = connection.send(request, 7).topics
        found.append((topic.error_code, topic.topic_config_error_code, topic.num_partitions, bool(topic.configs)))
    assert found == [(0, ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1, False), (0, 0, 3, True)]


def test_metadata_of_all_topics_contains_only_permitted_topics(broker: hmb.Broker) -> None:
    """A Metadata response for all topics contains only the topics that the user may describe.

    In version 0, an empty list requests all topics. In later versions, null requests all topics.
    """
    requests = [(MetadataRequest(topics=[]), 0), (MetadataRequest(topics=None), 1), (MetadataRequest(topics=[]), 1)]
    store = broker._server.context.security
    broker.create_topic("secret")
    create_acls(store, [acl(operation=Op.DESCRIBE)])
    try:
        with connect(broker, "alice") as connection:
            answers = [connection.send(*request).topics for request in requests]
    finally:
        store.change(lambda state: SecurityState(state.credentials))
        broker.delete_topic("secret")
    assert [[topic.name for topic in topics] for topics in answers] == [["t"], ["t"], []]


def test_acls_survive_a_restart(tmp_path: Path) -> None:
    with hmb.Broker(tmp_path, config=AUTHORIZER) as broker:
        create_acls(broker._server.context.security, [acl()])
        before = broker._server.context.security.state.acls
        broker.restart()
        assert broker._server.context.security.state.acls == before


def test_a_super_user_may_do_everything(broker: hmb.Broker) -> None:
    with hmb.Admin(broker.bootstrap_servers, security=as_user(broker, "admin")) as admin:
        assert [topic.name for topic in admin.list_topics()] == ["t"]
        assert set(admin.list_users()) == {"admin", "alice"}


def test_acls_are_refused_without_an_authorizer() -> None:
    with hmb.Broker() as broker, Connection("127.0.0.1", broker.listeners[0].port) as connection:
        for api in (ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS):
            response = connection.send(sample(request_class(api), 3), 3)
            assert codes(response) == {ErrorCode.SECURITY_DISABLED}


def test_a_right_that_is_taken_away_ends_a_fetch_session(broker: hmb.Broker) -> None:
    """The broker checks at each request of a fetch session whether the client may still read the session's topics."""
    store = broker._server.context.security
    create_acls(store, [acl(operation=Op.WRITE), acl(operation=Op.READ)])
    servers, security = broker.bootstrap_servers, as_user(broker, "alice")
    with (
        hmb.Producer(servers, security=security) as producer,
        hmb.Consumer(servers, "t", security=security) as consumer,
    ):
        producer.send("t", b"first").result()
        until(lambda: bool(consumer.poll(timeout=0.1)))
        consumer.poll(timeout=0.1)
        store.change(lambda state: SecurityState(state.credentials))
        broker.produce("t", b"secret")
        with pytest.raises(hmb.KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
            for _ in range(20):
                assert b"secret" not in [record.value for record in consumer.poll(timeout=0.5)]


def test_a_streams_group_needs_rights_on_the_topics_of_its_topology() -> None:
    topology = word_count()
    topology.subtopologies[0].source_topics = ["t"]
    owned: dict[str, list[TaskIds]] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    joining = StreamsGroupHeartbeatRequest(
        group_id="g", member_id="thread", rebalance_timeout_ms=1000, topology=topology, **owned
    )
    internal = {"name": "count-", "pattern": Pattern.PREFIXED}
    rights = [acl("g", kind=Kind.GROUP), acl(operation=Op.DESCRIBE), acl(operation=Op.DESCRIBE, **internal)]  # type: ignore[arg-type]
    with hmb.Broker(users={"admin": "x", "alice": "x"}, config=AUTHORIZER) as broker:
        broker.create_topic("t")
        store, connection = broker._server.context.security, connect(broker, "alice")
        create_acls(store, rights[:2])
        connection.send(FindCoordinatorRequest(coordinator_keys=["g"]))
        assert connection.send(joining).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        create_acls(store, rights[2:])
        until(lambda: not connection.send(joining).error_code)
        problem = connection.send(joining).status[-1].status_detail
        assert problem.endswith("; Unauthorized to CREATE on topics count-changelog, count-repartition.")
        create_acls(store, [acl(operation=Op.CREATE, **internal)])  # type: ignore[arg-type]
        connection.send(joining)
        assert {"count-changelog", "count-repartition"} <= set(broker.topics())
        describing = StreamsGroupDescribeRequest(group_ids=["g"])
        assert connection.send(describing).groups[0].topology is not None
        store.change(lambda state: SecurityState(state.credentials))
        create_acls(store, rights[:2])
        (hidden,) = connection.send(describing).groups
        assert (hidden.error_code, hidden.topology) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)
        connection.close()
