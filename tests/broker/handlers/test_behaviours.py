"""Tests of behavior on which clients depend, and which new brokers often implement wrongly. Each behavior has a number.

This module contains one short test for each behavior. The test modules of the individual APIs contain further tests.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from copy import copy
from typing import Any

import pytest

from hmb.broker import BrokerServer
from hmb.broker.dispatch import Dispatcher
from hmb.broker.handlers import HANDLERS
from hmb.client import Connection
from hmb.coordinator.transactions.markers import MarkerWriter
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.connection import ClientConnection
from hmb.protocol.enums import EARLIEST, LATEST, MAX_TIMESTAMP
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages import request_class
from hmb.protocol.messages.api_versions import ApiVersionsRequest
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.describe_configs import DescribeConfigsRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.heartbeat import HeartbeatRequest
from hmb.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest
from hmb.protocol.messages.join_group import JoinGroupRequest
from hmb.protocol.messages.list_offsets import ListOffsetsRequest
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.messages.offset_commit import OffsetCommitRequest
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest
from hmb.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from hmb.protocol.messages.sync_group import SyncGroupRequest
from hmb.protocol.schema import Request, Response
from hmb.records import Record, RecordBatch, encode_batch, read_records
from hmb.records.control import ControlType, EndTransactionMarker
from tests.broker.calls import fetch, outcome, produce
from tests.broker.conftest import LISTENER, Asker, Wire
from tests.broker.groups.transactional_producer import Producer
from tests.broker.handlers.test_transaction_apis import committed_offset
from tests.storage.conftest import batch

TOPIC = 2  # DescribeConfigs: the resource type of a topic
SET, DELETE, APPEND, SUBTRACT = range(4)


def test_01_an_unknown_version_of_api_versions_gets_a_v0_body_with_the_ranges(ask: Asker) -> None:
    answer = ask(ApiVersionsRequest(), 0)
    frame = bytearray(b"".join(map(bytes, ClientConnection("c").request(ApiVersionsRequest(), 0)))[4:])  # type: ignore[arg-type]
    frame[2:4] = (99).to_bytes(2, "big")
    raw = ask.raw(bytes(frame))
    assert raw is not None
    assert raw[4:6] == (35).to_bytes(2, "big")
    assert int.from_bytes(raw[6:10], "big") == len(answer.api_keys) == (len(raw) - 10) // 6


def test_02_produce_and_join_group_are_advertised_from_version_0(ask: Asker) -> None:
    lowest = {each.api_key: each.min_version for each in ask(ApiVersionsRequest(), 0).api_keys}
    assert lowest[ApiKey.PRODUCE] == lowest[ApiKey.JOIN_GROUP] == lowest[ApiKey.FETCH] == lowest[ApiKey.METADATA] == 0


def test_03_the_advertised_apis_are_those_with_a_handler(ask: Asker) -> None:
    advertised = {each.api_key: (each.min_version, each.max_version) for each in ask(ApiVersionsRequest(), 0).api_keys}
    served = list(map(request_class, HANDLERS))
    assert advertised == {request.api_key: (request.versions[0], request.versions[-1]) for request in served}
    assert advertised[ApiKey.OFFSET_FETCH][1] < 10 or advertised[ApiKey.METADATA][1] >= 10, "ids nobody can know"


def test_04_auto_creation_names_the_leader_in_the_same_answer(ask: Asker) -> None:
    (topic,) = ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="new")]), 9).topics
    assert (topic.error_code, topic.partitions[0].error_code, topic.partitions[0].leader_id) == (0, 0, 0)


def test_05_max_message_bytes_replication_factors_and_configs(ask: Asker) -> None:
    def create(name: str, replicas: int, **configs: str) -> int:
        wanted = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=replicas)
        wanted.configs = [wanted.CreatableTopicConfig(name=n.replace("_", "."), value=v) for n, v in configs.items()]
        code: int = ask(CreateTopicsRequest(topics=[wanted]), 7).topics[0].error_code
        return code

    assert create("default", -1) == 0
    assert create("three", 3) == ErrorCode.INVALID_REPLICATION_FACTOR
    assert create("t", 1, max_message_bytes="100") == 0
    assert outcome(ask(produce(batch(10)), 9)) == ErrorCode.MESSAGE_TOO_LARGE
    resource = DescribeConfigsRequest.DescribeConfigsResource(resource_type=TOPIC, resource_name="t")
    resource.configuration_keys = None
    (described,) = ask(DescribeConfigsRequest(resources=[resource]), 4).results
    sources = {each.name: each.config_source for each in described.configs}
    assert sources["max.message.bytes"] == 1
    assert sources["retention.ms"] == 5
    for operation, value, then in ((APPEND, "compact", "delete,compact"), (SUBTRACT, "delete", "compact")):
        change = IncrementalAlterConfigsRequest.AlterConfigsResource(resource_type=TOPIC, resource_name="t")
        config = change.AlterableConfig(name="cleanup.policy", config_operation=operation, value=value)
        change.configs = [config]
        assert ask(IncrementalAlterConfigsRequest(resources=[change]), 1).responses[0].error_code == 0
        (described,) = ask(DescribeConfigsRequest(resources=[resource]), 4).results
        assert {each.name: each.value for each in described.configs}["cleanup.policy"] == then


def test_06_fetches_give_whole_batches_at_least_one_and_name_every_partition(ask: Asker) -> None:
    for name in ("t", "u"):
        ask.broker.topics.create(name, 1).partitions[0].append(batch(5))
    (answer,) = ask(fetch(3), 12).responses[0].partitions
    assert [record.offset for record in read_records(answer.records)] == [0, 1, 2, 3, 4]
    response = ask(fetch(0, topics=["t", "u"], max_bytes=1, partition_max_bytes=1), 12)
    assert [len(each.partitions[0].records or b"") for each in response.responses] == [batch(5).size, 0]
    request = fetch(0)
    request.session_id, request.session_epoch = 4711, 1
    assert ask(request, 12).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    request = fetch(0)
    request.session_epoch = 0
    request.session_id, request.session_epoch = ask(request, 12).session_id, 7
    assert request.session_id != 0
    assert ask(request, 12).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_07_a_future_epoch_has_no_end_and_times_get_the_first_offset_at_or_after(ask: Asker) -> None:
    log = ask.broker.topics.create("t", 1).partitions[0]
    for timestamp in (1_000, 3_000, 2_000):
        log.append(RecordBatch.parse(encode_batch([Record(timestamp=timestamp, value=b"x")])))
    asked = OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic="t")
    asked.partitions = [asked.OffsetForLeaderPartition(partition=0, leader_epoch=9)]
    (answer,) = ask(OffsetForLeaderEpochRequest(topics=[asked]), 4).topics[0].partitions
    assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (0, -1, -1)

    def offset(timestamp: int) -> int:
        topic = ListOffsetsRequest.ListOffsetsTopic(name="t")
        topic.partitions = [topic.ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
        found: int = ask(ListOffsetsRequest(topics=[topic]), 7).topics[0].partitions[0].offset
        return found

    expected = {LATEST: 3, EARLIEST: 0, MAX_TIMESTAMP: 1, 500: 0, 1_001: 1, 3_000: 1, 3_001: -1}
    assert {timestamp: offset(timestamp) for timestamp in expected} == expected


def test_08_read_committed_stops_at_the_last_stable_offset_and_gets_the_aborted_list(ask: Asker) -> None:
    log = ask.broker.topics.create("t", 1).partitions[0]
    log.append(batch(2, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True))

    def read(isolation_level: int) -> tuple[int, int, list[int]]:
        request = fetch(0)
        request.isolation_level = isolation_level
        (answer,) = ask(request, 12).responses[0].partitions
        aborted = [each.first_offset for each in answer.aborted_transactions or []]
        return len(answer.records or b""), answer.last_stable_offset, aborted

    assert read(0) == (batch(2).size, 0, [])
    assert read(1) == (0, 0, [])
    log.append_marker(EndTransactionMarker(ControlType.ABORT, coordinator_epoch=0), 7, 0)
    _, stable, aborted = read(1)
    assert (stable, aborted) == (3, [0])


def test_09_acks_0_gets_no_answer_and_answers_keep_the_order_of_requests(connect: Callable[[], Wire]) -> None:
    wire, client = connect(), ClientConnection("c")
    wire.ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")]), 9)
    requests: list[tuple[Request, int, bool]] = [
        (produce(batch(1), acks=0), 9, False),
        (ApiVersionsRequest(), 0, True),
        (produce(batch(1)), 9, True),
        (MetadataRequest(topics=None), 9, True),
    ]
    wire.send(b"".join(bytes(part) for each in requests for part in client.request(*each)))  # type: ignore[arg-type]
    names = [type(client.receive(memoryview(wire.frame() or b""))[1]).__name__ for _ in range(3)]
    assert names == ["ApiVersionsResponse", "ProduceResponse", "MetadataResponse"]


def test_10_a_record_without_a_key_is_refused_on_a_compacted_topic_with_its_batch(ask: Asker) -> None:
    log = ask.broker.topics.create("t", 1, {"cleanup.policy": "compact"}).partitions[0]
    records = [Record(key=b"a", value=b"1"), Record(value=b"2"), Record(key=b"c", value=b"3")]
    (answer,) = ask(produce(encode_batch(records)), 9).responses[0].partition_responses
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in answer.record_errors] == [1]
    assert log.log_end_offset == 0


def test_11_commit_metadata_and_leader_epoch_come_back_as_sent(ask: Asker) -> None:
    ask.broker.topics.create("t", 2)
    ask.broker.groups.make_topic()
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="t")
    each = topic.OffsetCommitRequestPartition
    topic.partitions = [
        each(partition_index=0, committed_offset=5, committed_leader_epoch=-1, committed_metadata="so far; \u00e9"),
        each(partition_index=1, committed_offset=6, committed_leader_epoch=3, committed_metadata=""),
    ]
    ask(OffsetCommitRequest(group_id="g", topics=[topic]), 8)
    asked = OffsetFetchRequest.OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])
    (answer,) = ask(OffsetFetchRequest(group_id="g", topics=[asked]), 7).topics
    found = [(p.committed_offset, p.committed_leader_epoch, p.metadata) for p in answer.partitions]
    assert found == [(5, -1, "so far; \u00e9"), (6, 3, "")]


def test_12_a_transaction_ends_once_its_timeout_has_a_limit_and_zombies_are_shut_out(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask.broker.topics.create("t", 1)
    producer = Producer(ask)
    assert producer.init(900_001) == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    producer.add()
    write, seen_meanwhile = MarkerWriter.write, []
    elsewhere = copy(producer)
    elsewhere.ask = Asker(ask.broker, Dispatcher(ask.broker, LISTENER), ask.logs)

    def meanwhile(writer: MarkerWriter, *arguments: Any) -> None:
        seen_meanwhile.append(elsewhere.end())
        write(writer, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(MarkerWriter, "write", meanwhile)
        assert producer.end() == 0
    assert seen_meanwhile == [ErrorCode.CONCURRENT_TRANSACTIONS]
    assert producer.end() == 0, "a repetition is answered like the first"
    assert producer.end(False) == ErrorCode.INVALID_TXN_STATE
    Producer(ask)
    assert producer.end() == ErrorCode.PRODUCER_FENCED
    assert producer.write() == ErrorCode.INVALID_PRODUCER_EPOCH


def test_13_offsets_in_a_transaction_come_from_members_and_delay_clients_that_require_stable_offsets(
    ask: Asker,
) -> None:
    ask.broker.topics.create("t", 1)
    producer = Producer(ask, kind=True)
    assert producer.commit_offset(1, generation_id=1) == ErrorCode.ILLEGAL_GENERATION
    member_id = ask(join(instance="one"), 5).member_id
    ask(SyncGroupRequest(group_id="g", generation_id=1, member_id=member_id, group_instance_id="one"), 3)
    member = {"generation_id": 1, "member_id": member_id, "group_instance_id": "one"}
    assert producer.commit_offset(5, **member | {"generation_id": 2}) == ErrorCode.ILLEGAL_GENERATION
    assert producer.commit_offset(5, **member | {"member_id": "x"}) == ErrorCode.FENCED_INSTANCE_ID
    assert producer.commit_offset(5, generation_id=1, member_id="x") == ErrorCode.UNKNOWN_MEMBER_ID
    assert producer.commit_offset(5, **member) == 0
    assert committed_offset(ask, stable=True) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    assert producer.end() == 0
    assert committed_offset(ask, stable=True) == (0, 5)


def test_14_a_duplicate_among_the_last_five_gets_its_first_offset_and_only_a_gap_is_45(
    ask: Asker, make_asker: Callable[..., Asker]
) -> None:
    ask.broker.topics.create("t", 1)
    ids = ask(InitProducerIdRequest(transactional_id=None), 4)

    def send(asker: Asker, sequence: int) -> tuple[int, int]:
        data = batch(1, producer_id=ids.producer_id, producer_epoch=0, base_sequence=sequence)
        (answer,) = asker(produce(data), 9).responses[0].partition_responses
        return answer.error_code, answer.base_offset

    assert [send(ask, sequence) for sequence in range(6)] == [(0, sequence) for sequence in range(6)]
    assert [send(ask, sequence) for sequence in range(1, 6)] == [(0, sequence) for sequence in range(1, 6)]
    ask.close()
    again = make_asker()
    assert send(again, 5) == (0, 5), "a snapshot keeps the last one, in Kafka's format"
    assert send(again, 8)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(again, 6) == (0, 6)


def join(member_id: str = "", instance: str | None = None) -> JoinGroupRequest:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=[protocol],
    )


def test_15_a_live_member_gets_rebalance_in_progress_and_never_unknown_member_id(
    connect: Callable[[], Wire], broker: BrokerServer
) -> None:
    first, second = connect(), connect()
    while first.ask(FindCoordinatorRequest(key="g"), 2).error_code:  # type: ignore[attr-defined]
        pass
    member = first.ask(join(instance="one"), 5)
    generation, member_id = member.generation_id, member.member_id  # type: ignore[attr-defined]
    sync = SyncGroupRequest(group_id="g", generation_id=generation, member_id=member_id, group_instance_id="one")
    assert first.ask(sync, 3).error_code == 0  # type: ignore[attr-defined]
    answers: list[Response] = []
    joining = threading.Thread(target=lambda: answers.append(second.ask(join(instance="two"), 5)))
    joining.start()
    beat = HeartbeatRequest(group_id="g", generation_id=generation, member_id=member_id, group_instance_id="one")
    codes = {first.ask(beat, 3).error_code}  # type: ignore[attr-defined]
    while ErrorCode.REBALANCE_IN_PROGRESS not in codes:
        codes.add(first.ask(beat, 3).error_code)  # type: ignore[attr-defined]
    assert codes <= {0, ErrorCode.REBALANCE_IN_PROGRESS}
    rejoined = first.ask(join(member_id, "one"), 5)
    joining.join(20)
    assert rejoined.member_id == member_id  # type: ignore[attr-defined]
    assert answers[0].generation_id == rejoined.generation_id == generation + 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_16_the_port_after_binding_to_0_is_the_one_advertised(host: str) -> None:
    listeners = {"listeners": f"A://{host}:0,B://{host}:0", "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT"}
    with BrokerServer(config=listeners) as broker:
        ports = [server.port for server in broker.listeners]
        assert len(set(ports)) == 2
        for listener in broker.listeners:
            with Connection(host, listener.port) as connection:
                (node,) = connection.send(MetadataRequest(topics=[])).brokers
                assert (node.node_id, node.host, node.port) == (0, host, listener.port)


def test_17_a_handlers_exception_closes_that_one_connection(
    connect: Callable[[], Wire], broker: BrokerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlucky, other = connect(), connect()
    other.ask(ApiVersionsRequest(), 0)
    monkeypatch.setattr("hmb.broker.topics.registry.Topics.all", lambda self: 1 / 0)
    unlucky.send(b"".join(map(bytes, ClientConnection("c").request(MetadataRequest(topics=None), 9))))  # type: ignore[arg-type]
    assert unlucky.frame() is None
    monkeypatch.undo()
    assert other.ask(MetadataRequest(topics=None), 9).topics == []  # type: ignore[attr-defined]
