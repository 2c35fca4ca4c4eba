"""Tests of quotas in a broker: how it stores them, and what it does with a fast client."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import hmb
from hmb.broker import BrokerServer
from hmb.broker.context import ConnectedClient
from hmb.broker.handlers import HANDLERS, alter_client_quotas
from hmb.broker.network import connection_limits
from hmb.broker.security.quotas import alterations, measuring
from hmb.broker.security.quotas.limits import Limit
from hmb.broker.security.quotas.measuring import ClientQuotas
from hmb.broker.security.quotas.throttling import throttled
from hmb.broker.security.store import SecurityState
from hmb.client.admin import ClientQuotaEntity
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.connection import ClientConnection
from hmb.protocol.enums import QuotaKey
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.delete_topics import DeleteTopicsRequest
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from hmb.records import Record, encode_batch, encode_message_set
from hmb.storage.clock import BrokerClock
from tests.broker.calls import fetch, produce
from tests.broker.conftest import Asker, Wire, as_bytes
from tests.broker.security.conftest import entity
from tests.waiting import until

# -- storage


def test_quotas_survive_a_restart(tmp_path: Path) -> None:
    alice = {ClientQuotaEntity("alice", ""): {"producer_byte_rate": 5.0, "request_percentage": 0.5}}
    address = ClientQuotaEntity(ip="192.0.2.1")
    with hmb.Broker(tmp_path / "data") as broker:
        with hmb.Admin(broker.bootstrap_servers) as admin:
            assert set(admin.alter_quotas({**alice, address: {"connection_creation_rate": 3.0}}).values()) == {None}
            assert admin.alter_quotas({address: {"connection_creation_rate": None}}) == {address: None}
        broker.restart()
        with hmb.Admin(broker.bootstrap_servers) as admin:
            assert admin.describe_quotas() == alice


def test_a_producer_with_a_quota_gets_its_response_after_the_records_are_on_disk() -> None:
    """A producer with a quota gets its response even if the response must wait until the records are on disk.

    The broker counts the bytes of the records for the quota before it waits for the disk.
    """
    with hmb.Broker(config={"log.flush.acks.all": True}) as broker:
        with hmb.Admin(broker.bootstrap_servers) as admin:
            admin.alter_quotas({ClientQuotaEntity(client_id=""): {"producer_byte_rate": 1e9}})
        with hmb.Producer(broker.bootstrap_servers, acks="all") as producer:
            assert producer.send("t", b"value").result(10).offset == 0


def test_a_request_with_many_keys_is_refused_quickly(ask: Asker) -> None:
    """The broker refuses a request with 50,000 unknown quota keys quickly.

    A check that compared every key with every other key would take minutes.
    """
    kind = AlterClientQuotasRequest.EntryData
    ops = [kind.OpData(key=str(number), value=1.0) for number in range(50_000)]
    request = AlterClientQuotasRequest(entries=[kind(entity=[kind.EntityData(entity_type="user")], ops=ops)])
    context: Any = SimpleNamespace(broker=ask.broker)
    (entry,) = alter_client_quotas.handle(request, context).entries
    assert entry.error_code == ErrorCode.INVALID_REQUEST


# -- the handlers


def test_the_table_has_wrappers_only_while_quotas_need_them() -> None:
    table, load = throttled(HANDLERS, ClientQuotas())

    def wrapped(*keys: str) -> set[ApiKey]:
        load(SecurityState(quotas={entity(user="alice"): dict.fromkeys(keys, 1.0)} if keys else {}))
        return {api for api in HANDLERS if table[api] is not HANDLERS[api]}

    assert wrapped() == set()
    assert wrapped("producer_byte_rate") == {ApiKey.PRODUCE}
    assert wrapped("consumer_byte_rate") == {ApiKey.FETCH, ApiKey.SHARE_FETCH}
    assert wrapped("controller_mutation_rate", "connection_creation_rate") == {
        ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS
    }  # fmt: skip
    assert wrapped("request_percentage") == set(HANDLERS)
    assert wrapped() == set()


class Clock:
    """The clock of the broker's quota windows. The time stands still until a test changes it."""

    def __init__(self) -> None:
        self.ms = 0

    def __call__(self) -> int:
        return self.ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def broker(clock: Clock) -> Iterator[BrokerServer]:
    """Yield a broker whose quota windows have two samples of 1 s. Its topic t contains 3,000 bytes in two batches."""
    config = {"quota.window.num": "2", "controller.quota.window.num": "2", "log.flush.acks.all": "false"}
    with BrokerServer(config=config, clock=BrokerClock(monotonic_ms=clock)) as broker:
        wire = connect(broker)
        assert wire.ask(create("t", partitions=1), 7).topics[0].error_code == 0  # type: ignore[attr-defined]
        for _ in range(2):
            wire.ask(produce(BATCH), 9)
        yield broker


def set_quota(broker: BrokerServer, key: QuotaKey, value: float | None, **names: str) -> None:
    with hmb.Admin(broker.bootstrap_servers, "another client") as admin:
        quota_entity = ClientQuotaEntity(**names)
        assert admin.alter_quotas({quota_entity: {key: value}}) == {quota_entity: None}


def connect(broker: BrokerServer) -> Wire:
    bound = broker.listeners[0]
    return Wire(socket.create_connection((bound.host, bound.port), timeout=30))


BATCH = encode_batch([Record(0, 0, None, bytes(1500), ())])


@pytest.mark.parametrize("acks", [1, -1])
def test_a_producer_that_ignores_the_throttle_time_is_held_by_the_broker(broker: BrokerServer, acks: int) -> None:
    set_quota(broker, QuotaKey.PRODUCER_BYTE_RATE, 1000, client_id="test")
    wire = connect(broker)
    started = time.monotonic()
    answer: Any = wire.ask(produce(BATCH, acks=acks), 9)
    # At 1,000 bytes/s, about 1,500 bytes take 1.5 s. The window is 1 s long, so the client must wait for another 0.5 s.
    assert answer.throttle_time_ms == len(BATCH) - 1000
    wire.ask(MetadataRequest(topics=[]), 9)
    assert (time.monotonic() - started) * 1000 >= answer.throttle_time_ms
    set_quota(broker, QuotaKey.PRODUCER_BYTE_RATE, None, client_id="test")
    assert wire.ask(produce(BATCH), 9).throttle_time_ms == 0  # type: ignore[attr-defined]


def test_a_throttled_producer_with_requests_in_flight_gets_its_response_at_once(broker: BrokerServer) -> None:
    """A throttled producer gets its response at once. Only its next request has to wait.

    The test sends two Produce requests together. The throttle time in the first response is more than a minute. During
    this time, the broker does not handle the second request.
    """
    set_quota(broker, QuotaKey.PRODUCER_BYTE_RATE, 25, user="ANONYMOUS")
    wire = connect(broker)
    client = ClientConnection("test")
    requests = [client.request(produce(BATCH), 9) for _ in range(2)]
    wire.send(b"".join(as_bytes(part) for parts in requests for part in parts))
    answer: Any = client.receive(memoryview(wire.frame() or b""))[1]
    assert answer.throttle_time_ms > 60_000
    _, port = wire.socket.getsockname()
    assert dict(broker.clients())[f"127.0.0.1:{port}"].requests == 1


def test_a_consumer_is_throttled_and_still_reads(broker: BrokerServer) -> None:
    """A consumer receives a batch that is larger than its quota, and is then throttled.

    A window of 1 s permits 1,000 bytes. The first batch is larger, and the broker sends this batch alone.
    """
    set_quota(broker, QuotaKey.CONSUMER_BYTE_RATE, 1000, client_id="")
    answer: Any = connect(broker).ask(fetch(), 11)
    size = len(answer.responses[0].partitions[0].records)
    assert (answer.throttle_time_ms, size) == (size - 1000, len(BATCH))


def test_a_member_of_a_share_group_is_throttled() -> None:
    """The consumer quota also applies to a member of a share group.

    The response has 12,000 bytes. The quota permits 10,000 bytes in a window of 10 s, so the throttle time is 2 s.
    """
    partition = ShareFetchResponse.ShareFetchableTopicResponse.PartitionData(records=memoryview(bytes(12_000)))
    topic = ShareFetchResponse.ShareFetchableTopicResponse(partitions=[partition])
    quotas = ClientQuotas(clock_ms=lambda: 0)
    table, load = throttled({ApiKey.SHARE_FETCH: lambda *_: ShareFetchResponse(responses=[topic])}, quotas)
    load(SecurityState(quotas={entity(user="ANONYMOUS"): {"consumer_byte_rate": 1000.0}}))
    context: Any = SimpleNamespace(client=ConnectedClient(), header=SimpleNamespace(client_id=None))
    answer: Any = table[ApiKey.SHARE_FETCH](ShareFetchRequest(), context)
    assert answer.throttle_time_ms == 2000


def test_the_time_of_requests_is_limited(broker: BrokerServer) -> None:
    set_quota(broker, QuotaKey.REQUEST_PERCENTAGE, 0.0001, user="")
    answer: Any = connect(broker).ask(MetadataRequest(topics=[]), 9)
    assert answer.throttle_time_ms == 1000  # The throttle time is at most the length of one sample, 1 s.


def create(*names: str, partitions: int = 10) -> CreateTopicsRequest:
    topics = [
        CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names
    ]
    return CreateTopicsRequest(topics=topics, timeout_ms=1000)


def test_partitions_take_tokens(broker: BrokerServer, clock: Clock) -> None:
    """A new topic takes one token of the quota for each partition.

    At first, one token is available: 0.5 tokens/s for 2 s. A client can take more tokens than are available, so the
    broker creates the topic "a" with two partitions. Now -1 tokens are available, so the broker refuses the topic "b".
    """
    set_quota(broker, QuotaKey.CONTROLLER_MUTATION_RATE, 0.5, user="ANONYMOUS")
    wire = connect(broker)
    answer: Any = wire.ask(create("a", "b", partitions=2), 7)
    codes = {topic.name: ErrorCode(topic.error_code) for topic in answer.topics}
    assert codes == {"a": ErrorCode.NONE, "b": ErrorCode.THROTTLING_QUOTA_EXCEEDED}
    assert "b" not in broker.context.topics
    old: Any = connect(broker).ask(DeleteTopicsRequest(topic_names=["a"], timeout_ms=1000), 4)
    assert old.responses[0].error_code == 0
    assert (answer.throttle_time_ms, old.throttle_time_ms) == (2000, 6000)
    clock.ms += 100_000
    assert connect(broker).ask(create("b"), 7).topics[0].error_code == 0  # type: ignore[attr-defined]


def test_validation_takes_no_tokens(broker: BrokerServer) -> None:
    set_quota(broker, QuotaKey.CONTROLLER_MUTATION_RATE, 0.1, user="ANONYMOUS")
    request = create("a")
    request.validate_only = True
    wire = connect(broker)
    for _ in range(3):
        answer: Any = wire.ask(request, 7)
        assert (answer.topics[0].error_code, answer.throttle_time_ms) == (0, 0)


def test_the_broker_stops_while_a_client_is_muted(broker: BrokerServer) -> None:
    set_quota(broker, QuotaKey.PRODUCER_BYTE_RATE, 1, client_id="test")
    wire = connect(broker)
    answer: Any = wire.ask(produce(BATCH), 9)
    assert answer.throttle_time_ms > 100_000
    started = time.monotonic()
    broker.stop()
    assert time.monotonic() - started < 60


def test_a_client_whose_version_has_no_throttle_time(ask: Asker) -> None:
    """A Produce v0 response has no field for the throttle time. The broker delays the client's next request anyway."""
    table, load = throttled(HANDLERS, ask.broker.quotas)
    load(SecurityState(quotas={entity(client_id="test"): {"producer_byte_rate": 1.0}}))
    ask.dispatcher._handlers = table
    assert ask(create("t", partitions=1), 0).topics[0].error_code == 0
    ask(produce(encode_message_set([Record(0, -1, None, bytes(100), ())], 0)), 0)
    assert ask.dispatcher._client.muted_until > time.monotonic()


# -- connections


def refused(wire: Wire) -> bool:
    """Return whether the broker has closed a connection, instead of answering a request."""
    try:
        wire.send(b"".join(as_bytes(part) for part in ClientConnection("test").request(MetadataRequest(topics=[]), 9)))
        return wire.frame() is None
    except OSError:
        return True


def test_the_connections_of_an_address_are_limited() -> None:
    with hmb.Broker(config={"max.connections.per.ip": 2}) as broker:
        wires = [connect(broker) for _ in range(2)]
        assert not any(refused(wire) for wire in wires)
        assert refused(connect(broker))
        wires.pop().socket.close()
        until(lambda: len(broker.connected_clients) == 1)
        until(lambda: not refused(connect(broker)))


def test_single_addresses_have_other_limits() -> None:
    overrides = {"max.connections.per.ip": 0, "max.connections.per.ip.overrides": "192.0.2.1:5,localhost:1"}
    with hmb.Broker(config=overrides) as broker:
        wire = connect(broker)
        assert not refused(wire)
        assert refused(connect(broker))


def test_only_the_new_client_waits_while_the_broker_resolves_a_host_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow name server delays the new client, but not the threads that need the table of connections."""
    is_resolving, may_end = threading.Event(), threading.Event()

    def resolve_slowly(host: str) -> set[str]:
        is_resolving.set()
        assert may_end.wait(120)
        return set()

    monkeypatch.setattr(connection_limits, "addresses_of", resolve_slowly)
    with hmb.Broker(config={"max.connections.per.ip.overrides": "slow.example:1"}) as broker:
        with ThreadPoolExecutor() as threads:
            wire = connect(broker)
            try:
                assert is_resolving.wait(60)
                assert threads.submit(lambda: broker.connected_clients).result(60) == []
            finally:
                may_end.set()
        assert not refused(wire)


def test_other_changes_do_not_wait_while_the_broker_resolves_the_host_of_a_quota(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While the broker resolves the host name of one quota, a client can change another quota.

    Before a bug was fixed, the broker held the lock of the security store while it resolved the host name.
    """
    is_resolving, may_end = threading.Event(), threading.Event()

    def resolve_slowly(host: str) -> set[str]:
        is_resolving.set()
        assert may_end.wait(120)
        return {"192.0.2.7"}

    key = QuotaKey.CONNECTION_CREATION_RATE
    slow, alice = ClientQuotaEntity(ip="slow.example"), ClientQuotaEntity("alice")
    monkeypatch.setattr(alterations, "addresses_of", lambda host: {"192.0.2.7"})
    with hmb.Broker() as broker, hmb.Admin(broker.bootstrap_servers) as admin, ThreadPoolExecutor() as threads:
        with hmb.Admin(broker.bootstrap_servers) as other:
            monkeypatch.setattr(measuring, "addresses_of", resolve_slowly)
            altered = threads.submit(admin.alter_quotas, {slow: {key: 5.0}})
            try:
                assert is_resolving.wait(60)
                assert other.alter_quotas({alice: {QuotaKey.PRODUCER_BYTE_RATE: 9.0}}) == {alice: None}
            finally:
                may_end.set()
            assert altered.result(60) == {slow: None}
        assert broker._context.quotas.limits.of_address(key, "192.0.2.7") == Limit(5.0)


def test_a_listener_has_a_limit_of_its_own() -> None:
    listeners = "PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0"
    config = {
        "listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
        "listener.name.plaintext.max.connections": 1,
    }
    with hmb.Broker(config=config) as broker:
        wire = connect(broker)
        assert not refused(wire)
        assert refused(connect(broker))
        bound = broker.listeners[1]
        assert not refused(Wire(socket.create_connection((bound.host, bound.port), timeout=30)))


def test_the_rate_of_connections_of_an_address_is_limited(broker: BrokerServer, clock: Clock) -> None:
    """The limit is 2 connections/s. The broker reads nothing from the third one, and closes it after a delay."""
    with hmb.Admin(broker.bootstrap_servers) as admin:
        address = ClientQuotaEntity(ip="127.0.0.1")
        admin.alter_quotas({address: {QuotaKey.CONNECTION_CREATION_RATE: 2}})
        wires = [connect(broker) for _ in range(3)]
        assert [refused(wire) for wire in wires] == [False, False, True]
        clock.ms += 2000
        assert not refused(connect(broker))


def test_the_rate_of_all_connections_is_limited() -> None:
    """If the limit is 5 connections in a window of 1 s, the broker makes the sixth connection wait."""
    with hmb.Broker(config={"quota.window.num": 2, "max.connection.creation.rate": 5}) as broker:
        started = time.monotonic()
        wires = [connect(broker) for _ in range(11)]
        assert not any(refused(wire) for wire in wires)
        assert time.monotonic() - started > 0.9


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max.connections.per.ip.overrides", "127.0.0.1"),
        ("max.connections.per.ip.overrides", "127.0.0.1:x"),
        ("listener.name.plaintext.max.connections", "-1"),
        ("listener.name.plaintext.max.connections.per.ip", "1"),
        ("quota.window.num", "0"),
        ("client.quota.callback.class", "com.example.Quotas"),
    ],
)
def test_a_limit_that_the_broker_cannot_obey_stops_the_start(name: str, value: str) -> None:
    with pytest.raises(hmb.ConfigError, match=name):
        BrokerServer(config={name: value})
