"""Tests of `Admin` for topics: each topic has its own result or error."""

from __future__ import annotations

import pytest

import hmb
from hmb.client.admin import Admin, CreatedTopic, NewTopic, TopicDescription, raised
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.metadata import MetadataRequest
from tests.client.scripted_broker import ScriptedBroker


def code(result: object) -> ErrorCode:
    assert isinstance(result, KafkaError)
    return result.code


def test_the_life_of_topics(servers: str) -> None:
    with Admin(servers) as admin:
        placed = NewTopic("placed", assignments={0: [0], 1: [0]})
        created = admin.create_topics([NewTopic("a", 2, 1, {"retention.ms": "1000"}), "b", placed])
        a, *others = (raised(created[name]) for name in ("a", "b", "placed"))
        assert [(it.partitions, it.replication_factor) for it in (a, *others)] == [(2, 1), (3, 1), (2, 1)]
        assert [topic.name for topic in admin.list_topics()] == ["a", "b", "placed"]
        described = raised(admin.describe_topics(["a"])["a"])
        assert described.topic_id == a.topic_id
        assert [(it.partition, it.leader, it.replicas, it.isr) for it in described.partitions] == [
            (0, 0, (0,), (0,)),
            (1, 0, (0,), (0,)),
        ]
        assert not described.partitions[0].is_under_replicated
        assert admin.create_partitions({"a": 5}) == {"a": None}
        assert len(admin.cluster.topic("a").leaders) == 5
        assert admin.delete_topics(["a", "b", "placed"]) == {"a": None, "b": None, "placed": None}
        assert admin.list_topics() == []


def test_an_error_of_one_item_is_its_own(servers: str) -> None:
    with Admin(servers) as admin:
        results = admin.create_topics(["fine", "not fine"])
        assert isinstance(results["fine"], CreatedTopic)
        assert code(results["not fine"]) is ErrorCode.INVALID_TOPIC_EXCEPTION
        assert code(admin.create_topics(["fine"])["fine"]) is ErrorCode.TOPIC_ALREADY_EXISTS
        described = admin.describe_topics(["none", "fine"])
        assert code(described["none"]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert isinstance(described["fine"], TopicDescription)
        more = admin.create_partitions({"fine": 1, "none": 9})
        assert code(more["fine"]) is ErrorCode.INVALID_PARTITIONS
        assert code(more["none"]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert code(admin.delete_topics(["none", "fine"])["none"]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        with pytest.raises(KafkaError, match="there is no topic 'none'"):
            raised(described["none"])


def test_validate_only_changes_nothing(servers: str) -> None:
    with Admin(servers) as admin:
        raised(admin.create_topics(["rehearsed"], validate_only=True)["rehearsed"])
        assert admin.list_topics() == []
        admin.create_topics(["rehearsed"])
        assert admin.create_partitions({"rehearsed": 9}, validate_only=True) == {"rehearsed": None}
        assert len(admin.cluster.topic("rehearsed").leaders) == 3
        admin.delete_topics(["rehearsed"])


def test_an_old_broker_requires_the_number_of_partitions(servers: str) -> None:
    with ScriptedBroker(lambda request, version: None, {CreateTopicsRequest: 3}) as broker, Admin(broker.address) as it:
        with pytest.raises(KafkaError, match=r"older than Kafka 2\.4 and has no default") as caught:
            it.create_topics(["t"])
        assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_the_error_of_an_old_broker_names_the_missing_api() -> None:
    with ScriptedBroker(lambda request, version: None, {CreateTopicsRequest: -1}) as broker:
        with Admin(broker.address) as admin, pytest.raises(KafkaError, match="has no CREATE_TOPICS API") as caught:
            admin.create_topics(["t"])
        assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_asking_an_old_broker_for_a_topic_does_not_create_it() -> None:
    """`Admin` requests the metadata of all topics from an old broker.

    Before Metadata v4, a request that names a topic can create this topic.
    """
    with ScriptedBroker(lambda request, version: None, {MetadataRequest: 1}) as broker, Admin(broker.address) as admin:
        answer, asked = broker.metadata, []

        def metadata(request: MetadataRequest) -> object:
            asked.append(request.topics)
            return answer(request)

        broker.metadata = metadata  # type: ignore[assignment]
        assert code(admin.describe_topics(["t"])["t"]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        with pytest.raises(KafkaError, match="there is no topic 't'"):
            admin.cluster.topic("t")
        assert asked == [None, None]
        assert admin.cluster.topic("t", create=True).name == "t"


def test_a_broker_that_does_not_exist() -> None:
    with pytest.raises(hmb.client.ConnectionFailed, match=r"nobody listens on 127\.0\.0\.1:1"):
        Admin("127.0.0.1:1").list_topics()
