"""Tests of faults that make the broker answer a request with an error.

The broker can send such an error in each version of each API. If a test adds an error for one topic, only this topic
gets the error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import hmb
from hmb.broker.handlers import HANDLERS
from hmb.broker.security.acls.refusal import ERROR_FIELDS, refuse
from hmb.client import Admin, NewTopic
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages import request_class
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.messages.offset_commit import OffsetCommitRequest
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest
from hmb.protocol.schema import Struct
from hmb.testing.faults.requests import Faults
from tests.testing.test_faults import Client

VERSIONS = [(api, version) for api in sorted(HANDLERS) for version in request_class(api).versions]
ITEMS = {"string": "t", "int32": 0}  # type of an array's items -> the value to use


def filled(kind: type[Struct], version: int) -> Any:
    """Return an instance of `kind` in which each array of this version has one item."""
    values: dict[str, Any] = {}
    for name in kind.compile(version, flexible=False).fields:
        field = kind.fields[name]
        if field.item is not None:
            item = field.item
            values[name] = [filled(item.struct, version) if item.struct else ITEMS.get(item.kind, item.default_value())]
        elif name in ("name", "topic"):
            values[name] = "t"
    return kind(**values)


def codes_of(message: Any) -> Iterator[int]:
    for name in message.fields:
        value = getattr(message, name)
        if name in ERROR_FIELDS:
            yield value
        for each in value if isinstance(value, list) else ():
            if isinstance(each, Struct):
                yield from codes_of(each)


@pytest.mark.parametrize(("api", "version"), VERSIONS, ids=lambda value: getattr(value, "name", value))
def test_every_version_of_every_api_can_answer_an_error(api: ApiKey, version: int) -> None:
    """A response with an error code can be encoded in each version of each API.

    The decoded response contains this error code at least once.
    """
    response = refuse(filled(request_class(api), version), version, ErrorCode.UNKNOWN_SERVER_ERROR)
    decoded = type(response).decode(response.encode(version), version)
    assert ErrorCode.UNKNOWN_SERVER_ERROR in set(codes_of(decoded))


def test_a_consumer_repeats_a_fetch_that_got_an_error(broker: hmb.Broker, faults: Faults) -> None:
    broker.produce("t", "a")
    fault = faults.add("FETCH", error="NOT_LEADER_OR_FOLLOWER", times=2)
    with hmb.Consumer(broker.bootstrap_servers, "t") as consumer:
        assert next(iter(consumer)).value == b"a"
    assert fault.count == 2


def test_a_fault_of_fetch_finds_its_topic_in_a_running_fetch_session(broker: hmb.Broker, faults: Faults) -> None:
    """A fault applies to a topic even if a fetch session already contains the topic.

    In a fetch session, a request can omit the topic. The broker therefore ends the session, and the client then names
    all its partitions in each request.
    """
    broker.produce("t", "a")
    with hmb.Consumer(broker.bootstrap_servers, "t") as consumer:
        records = iter(consumer)
        assert next(records).value == b"a"
        fault = faults.add("FETCH", topic="t", partition=0, error="NOT_LEADER_OR_FOLLOWER", times=1)
        broker.produce("t", "b")
        assert next(records).value == b"b"
        broker.produce("t", "c")
        assert next(records).value == b"c"
    assert fault.count == 1


def test_an_error_of_one_partition_leaves_the_request_s_other_partitions_alone(
    broker: hmb.Broker, faults: Faults
) -> None:
    broker.create_topic("t", partitions=2)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    partition = topic.OffsetCommitRequestPartition
    faults.add("OFFSET_COMMIT", topic="t", partition=1, error="OFFSET_METADATA_TOO_LARGE")
    both = [topic(name="t", partitions=[partition(partition_index=n, committed_offset=5) for n in range(2)])]
    with Client(broker) as client:
        client.ask(FindCoordinatorRequest(key="g"), 0)  # The first request creates `__consumer_offsets`.
        answer = client.ask(OffsetCommitRequest(group_id="g", topics=both), 2)
    codes = {each.partition_index: each.error_code for each in answer.topics[0].partitions}
    assert codes == {0: 0, 1: ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert [each.partition for each in broker.committed("g")] == [0]


def test_an_error_after_the_request_took_effect(broker: hmb.Broker, faults: Faults) -> None:
    faults.add("CREATE_TOPICS", error="REQUEST_TIMED_OUT", times=1, takes_effect=True)
    with Admin(broker.bootstrap_servers) as admin:
        outcome = admin.create_topics([NewTopic("t", 1)])["t"]
    assert isinstance(outcome, hmb.KafkaError) and outcome.code == ErrorCode.REQUEST_TIMED_OUT
    assert broker.topics() == ["t"]


def test_an_error_of_create_topics_selects_one_of_two_topics(broker: hmb.Broker, faults: Faults) -> None:
    faults.add("CREATE_TOPICS", topic="a", error="POLICY_VIOLATION")
    with Admin(broker.bootstrap_servers) as admin:
        outcomes = admin.create_topics([NewTopic("a", 1), NewTopic("b", 1)])
    assert "a fault of the test" in str(outcomes["a"])
    assert not isinstance(outcomes["b"], hmb.KafkaError)
    assert broker.topics() == ["b"]


def test_metadata_with_an_error_still_names_the_brokers(broker: hmb.Broker, faults: Faults) -> None:
    broker.create_topic("t")
    fault = faults.add("METADATA", error="LEADER_NOT_AVAILABLE", times=2)
    with hmb.Producer(broker.bootstrap_servers) as producer:
        producer.send("t", b"a").result(timeout=30)
    assert fault.count == 2


@pytest.mark.parametrize(("topics", "version"), [([], 0), (None, 1)])
def test_metadata_of_all_topics_has_the_error_of_one_topic(
    broker: hmb.Broker, faults: Faults, topics: list[Any] | None, version: int
) -> None:
    """If a test adds an error for one topic, a Metadata response for all topics has the error for this topic only.

    In version 0, an empty list requests all topics. In later versions, null requests all topics.
    """
    for name in ("a", "b"):
        broker.create_topic(name)
    faults.add("METADATA", topic="a", error="LEADER_NOT_AVAILABLE")
    with Client(broker) as client:
        response = client.ask(MetadataRequest(topics=topics), version)
    found = {topic.name: topic.error_code for topic in response.topics}
    assert found == {"a": ErrorCode.LEADER_NOT_AVAILABLE, "b": ErrorCode.NONE}


def test_a_coordinator_that_is_loading(broker: hmb.Broker, faults: Faults) -> None:
    broker.produce("t", "a")
    apis = ("FIND_COORDINATOR", "JOIN_GROUP", "SYNC_GROUP", "OFFSET_FETCH", "OFFSET_COMMIT")
    added = [faults.add(api, error="COORDINATOR_LOAD_IN_PROGRESS", times=1) for api in apis]
    with hmb.Consumer(broker.bootstrap_servers, "t", group="g") as consumer:
        assert next(iter(consumer)).value == b"a"
        consumer.commit()
    assert [fault.count for fault in added] == [1] * len(apis)
    assert list(broker.committed("g").values()) == [1]


def test_an_unstable_offset_is_an_error_of_its_partition(broker: hmb.Broker, faults: Faults) -> None:
    broker.create_topic("t")
    faults.add("OFFSET_FETCH", error="UNSTABLE_OFFSET_COMMIT")
    group = OffsetFetchRequest.OffsetFetchRequestGroup
    topic = group.OffsetFetchRequestTopics(name="t", partition_indexes=[0])
    with Client(broker) as client:
        answer = client.ask(OffsetFetchRequest(groups=[group(group_id="g", topics=[topic])]), 8)
    (one,) = answer.groups
    assert (one.error_code, one.topics[0].partitions[0].error_code) == (0, ErrorCode.UNSTABLE_OFFSET_COMMIT)


@pytest.mark.parametrize("api", ["INIT_PRODUCER_ID", "END_TXN"])
def test_a_transaction_repeats_what_got_a_retriable_error(broker: hmb.Broker, faults: Faults, api: str) -> None:
    broker.create_topic("t")
    fault = faults.add(api, error="CONCURRENT_TRANSACTIONS", times=1)
    with hmb.Producer(broker.bootstrap_servers, transactional_id="x") as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send("t", b"a")
    assert fault.count == 1
    assert [each.value for each in broker.records("t")] == [b"a"]


def test_kafka_python_repeats_what_got_an_error(broker: hmb.Broker, faults: Faults) -> None:
    kafka = pytest.importorskip("kafka", reason="kafka-python is not installed")
    broker.create_topic("t")
    apis = ("PRODUCE", "FETCH", "LIST_OFFSETS", "METADATA")
    added = [faults.add(api, error="NOT_LEADER_OR_FOLLOWER", times=1) for api in apis]
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap_servers, retry_backoff_ms=20)
    producer.send("t", b"a").get(timeout=30)
    producer.close()
    consumer = kafka.KafkaConsumer("t", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest")
    assert next(consumer).value == b"a"
    consumer.close()
    assert [fault.count for fault in added] == [1] * len(apis)


def test_librdkafka_repeats_what_got_an_error(broker: hmb.Broker, faults: Faults) -> None:
    confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    broker.create_topic("t")
    apis = ("PRODUCE", "FETCH", "LIST_OFFSETS", "JOIN_GROUP", "OFFSET_FETCH")
    errors = ["NOT_LEADER_OR_FOLLOWER"] * 3 + ["COORDINATOR_LOAD_IN_PROGRESS"] * 2
    added = [faults.add(api, error=error, times=1) for api, error in zip(apis, errors, strict=True)]
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    producer = confluent.Producer(servers)
    producer.produce("t", b"a")
    assert producer.flush(30) == 0
    consumer = confluent.Consumer(servers | {"group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    found: Any = None
    for _ in range(60):
        found = consumer.poll(1)
        if found is not None and found.error() is None:
            break
    assert found.value() == b"a"
    consumer.close()
    assert [fault.count for fault in added] == [1] * len(apis)
