"""Tests of APIs whose versions behave differently. The tests call the broker's dispatcher, without a network."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from hmb.broker.dispatch import Dispatcher
from hmb.broker.errors import CloseConnection
from hmb.broker.handlers import HANDLERS
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.api_versions import ApiVersionsRequest
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.delete_topics import DeleteTopicsRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest
from hmb.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.broker.calls import fetch, outcome, produce
from tests.broker.conftest import LISTENER, Asker
from tests.storage.conftest import batch

Creatable = CreateTopicsRequest.CreatableTopic
NO_ID = uuid.UUID(int=0)


@pytest.mark.parametrize("version", ApiVersionsRequest.versions)
def test_api_versions_lists_what_is_served(ask: Asker, version: int) -> None:
    response = ask(ApiVersionsRequest(client_software_name="test", client_software_version="1"), version)
    ranges = {key.api_key: (key.min_version, key.max_version) for key in response.api_keys}
    assert ranges[ApiKey.PRODUCE] == (0, 13)
    assert ranges[ApiKey.FETCH] == (0, 18)
    assert set(ranges) == set(HANDLERS)


@pytest.mark.parametrize("name", ["", "a client", "-a", "a.", "a/b", "a\n"])
def test_a_client_with_an_invalid_software_name_is_refused(ask: Asker, name: str) -> None:
    for names in ((name, "1.0"), ("client", name)):
        response = ask(ApiVersionsRequest(client_software_name=names[0], client_software_version=names[1]), 3)
        assert (response.error_code, response.api_keys) == (ErrorCode.INVALID_REQUEST, [])


def test_api_versions_of_the_future_is_answered_in_version_0(ask: Asker) -> None:
    answer = ask.raw(bytes.fromhex("0012 0063 00000007 0001 63") + b"whatever comes in version 99")
    assert answer is not None
    correlation_id, error_code, count = answer[:4], answer[4:6], answer[6:10]
    assert (correlation_id, error_code) == (b"\0\0\0\x07", b"\0\x23")
    assert len(answer) == 10 + 6 * int.from_bytes(count, "big")


@pytest.mark.parametrize(
    "frame", [b"", b"\0\x12", bytes.fromhex("0000 0063 00000007 0001 63"), bytes.fromhex("03e7 0000 00000007 0001 63")]
)
def test_a_request_that_cannot_be_decoded_closes_the_connection(ask: Asker, frame: bytes) -> None:
    with pytest.raises(CloseConnection):
        ask.raw(frame)


@pytest.mark.parametrize("version", MetadataRequest.versions)
def test_metadata_makes_a_missing_topic_and_names_its_leader_at_once(ask: Asker, version: int) -> None:
    response = ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="new")]), version)
    assert [(b.node_id, b.host, b.port) for b in response.brokers] == [(0, "broker.example", 9093)]
    (topic,) = response.topics
    assert (topic.error_code, topic.name) == (0, "new")
    assert [(p.partition_index, p.leader_id, p.isr_nodes) for p in topic.partitions] == [(0, 0, [0])]
    assert (topic.topic_id.int != 0) == (version >= 10)


def test_metadata_without_topics_means_all_in_version_0_and_none_later(ask: Asker) -> None:
    ask.broker.topics.create("a", 1)
    assert [t.name for t in ask(MetadataRequest(topics=[]), 0).topics] == ["a"]
    assert ask(MetadataRequest(topics=[]), 1).topics == []
    assert [t.name for t in ask(MetadataRequest(topics=None), 1).topics] == ["a"]


def test_metadata_creates_no_topic_when_it_must_not(make_asker: Callable[..., Asker]) -> None:
    ask = make_asker(auto_create_topics_enable="false")
    wanted = [MetadataRequest.MetadataRequestTopic(name=name) for name in ("no", "a/b", "")]
    assert [t.error_code for t in ask(MetadataRequest(topics=wanted), 4).topics] == [3, 17, 17]
    by_id = [MetadataRequest.MetadataRequestTopic(name=None, topic_id=uuid.UUID(int=5))]
    assert ask(MetadataRequest(topics=by_id), 12).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert ask.broker.topics.all() == []


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0b", "x" * 250, "ünï"])
def test_illegal_topic_names_are_refused_everywhere(ask: Asker, name: str) -> None:
    created = ask(CreateTopicsRequest(topics=[Creatable(name=name, num_partitions=1, replication_factor=1)]), 7)
    assert created.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    for version in (0, 9, 12):
        metadata = ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name)]), version)
        assert metadata.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert ask.broker.topics.all() == []


@pytest.mark.parametrize("version", [10, 11])
def test_metadata_refuses_null_names_and_ids_where_they_only_look_possible(ask: Asker, version: int) -> None:
    """In versions 10 and 11, the broker refuses a Metadata request with a null topic name or with a topic id.

    The request format of these versions allows null names and topic ids, but Kafka accepts them only in version 12 and
    later.

    Before a bug was fixed, the broker closed the connection after a request with a null topic name, because a response
    cannot contain a null name before version 12.
    """
    by_null = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=None)])
    by_id = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t", topic_id=uuid.UUID(int=1))])
    for request, name in ((by_null, ""), (by_id, "t")):
        (answer,) = ask(request, version).topics
        assert (answer.error_code, answer.name) == (ErrorCode.INVALID_REQUEST, name)
    assert ask.broker.topics.all() == []


def test_a_topic_without_a_name_is_unknown_by_name_not_by_id(ask: Asker) -> None:
    assert outcome(ask(fetch(topics=[""]), 4)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert outcome(ask(produce(batch(1), topic=""), 9)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert outcome(ask(fetch(topics=[""]), 13)) == ErrorCode.UNKNOWN_TOPIC_ID
    assert outcome(ask(produce(batch(1), topic=""), 13)) == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("version", CreateTopicsRequest.versions)
def test_create_and_delete_topics(ask: Asker, version: int) -> None:
    config = Creatable.CreatableTopicConfig(name="segment.bytes", value="1000")
    wanted = Creatable(name="made", num_partitions=3, replication_factor=1, configs=[config])
    assert ask(CreateTopicsRequest(topics=[wanted]), version).topics[0].error_code == 0
    topic = ask.broker.topics.get("made")
    assert topic is not None and sorted(topic.partitions) == [0, 1, 2]
    assert topic.partitions[0].config.segment_bytes == 1000
    assert ask(CreateTopicsRequest(topics=[wanted]), version).topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    delete = DeleteTopicsRequest(topic_names=["made", "none"])
    codes = [r.error_code for r in ask(delete, min(version, 5)).responses]
    assert codes == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert ask.broker.topics.get("made") is None


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (Creatable(name="t", num_partitions=0, replication_factor=1), ErrorCode.INVALID_PARTITIONS),
        (Creatable(name="t", num_partitions=2**31 - 1, replication_factor=1), ErrorCode.POLICY_VIOLATION),
        (Creatable(name="t", num_partitions=1, replication_factor=3), ErrorCode.INVALID_REPLICATION_FACTOR),
        (Creatable(name="t", num_partitions=1, replication_factor=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (Creatable(name="a.b", num_partitions=1, replication_factor=1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (
            Creatable(
                name="t",
                num_partitions=-1,
                replication_factor=-1,
                configs=[Creatable.CreatableTopicConfig(name="x", value="y")],
            ),
            ErrorCode.INVALID_CONFIG,
        ),
        (
            Creatable(
                name="t",
                num_partitions=-1,
                replication_factor=-1,
                configs=[Creatable.CreatableTopicConfig(name="segment.bytes", value="1")],
            ),
            ErrorCode.INVALID_CONFIG,
        ),
        (
            Creatable(
                name="t",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[Creatable.CreatableReplicaAssignment(partition_index=0, broker_ids=[1])],
            ),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
    ],
)
def test_topics_that_cannot_be_created(ask: Asker, wanted: Creatable, code: ErrorCode) -> None:
    ask.broker.topics.create("a_b", 1)  # The names a_b and a.b are equal in metrics.
    (answer,) = ask(CreateTopicsRequest(topics=[wanted]), 7).topics
    assert (answer.error_code, bool(answer.error_message)) == (code, True)
    assert [topic.name for topic in ask.broker.topics.all()] == ["a_b"]


def test_validate_only_and_duplicates_make_nothing(ask: Asker) -> None:
    wanted = Creatable(name="t", num_partitions=2, replication_factor=1)
    (answer,) = ask(CreateTopicsRequest(topics=[wanted], validate_only=True), 7).topics
    assert (answer.error_code, answer.num_partitions) == (0, 2)
    (answer,) = ask(CreateTopicsRequest(topics=[wanted, wanted]), 7).topics
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert ask.broker.topics.all() == []


def test_topics_and_their_settings_survive_a_restart(ask: Asker, make_asker: Callable[..., Asker]) -> None:
    made = ask.broker.topics.create("t", 2, {"segment.bytes": "1000"})
    ask(produce(batch(3), partition=1), 9)
    ask.close()
    again = make_asker().broker.topics.get("t")
    assert again is not None
    assert (again.id, again.configs, sorted(again.partitions)) == (made.id, {"segment.bytes": "1000"}, [0, 1])
    assert again.partitions[1].config.segment_bytes == 1000
    assert again.partitions[1].log_end_offset == 3


def test_producer_ids_are_never_assigned_twice(ask: Asker, make_asker: Callable[..., Asker]) -> None:
    first = ask(InitProducerIdRequest(transactional_id=None), 4).producer_id
    ask.close()
    assert make_asker()(InitProducerIdRequest(transactional_id=None), 4).producer_id > first


@pytest.mark.parametrize("version", FindCoordinatorRequest.versions)
def test_this_broker_coordinates_every_group_and_transaction(ask: Asker, version: int) -> None:
    named = {"coordinator_keys": ["g", "h"]} if version >= 4 else {"key": "g"}
    for key_type in range(2 if version else 1):
        answer = ask(FindCoordinatorRequest(key_type=key_type, **named), version)
        found = {(f.error_code, f.node_id, f.host, f.port) for f in answer.coordinators or [answer]}
        assert found == {(0, 0, "broker.example", 9093)}
    if version >= 1:
        answer = ask(FindCoordinatorRequest(key_type=2, **named), version)
        assert {f.error_code for f in answer.coordinators or [answer]} == {ErrorCode.INVALID_REQUEST}


def test_the_log_names_the_client_of_an_invalid_response(ask: Asker, caplog: pytest.LogCaptureFixture) -> None:
    """If a response cannot be encoded, the broker's log names the API and version of the request, and the client."""
    broken = lambda request, context: MetadataResponse(cluster_id=5)  # type: ignore[arg-type]  # noqa: E731
    ask.dispatcher = Dispatcher(ask.broker, LISTENER, {ApiKey.METADATA: broken})
    with pytest.raises(CloseConnection):
        ask(MetadataRequest(topics=[]), 9)
    assert "MetadataRequest v9 of client 'test' failed" in caplog.text
