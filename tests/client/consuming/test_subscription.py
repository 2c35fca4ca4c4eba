"""Tests of subscriptions: topics by name or by pattern, and topics that are created or deleted later."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest

from hmb.client import Consumer, ConsumerRecord, Producer, TopicPartition
from hmb.client.admin import Admin
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.metadata import MetadataRequest, MetadataResponse
from hmb.records import encode_batch
from tests.client.consuming.scripted_log import RECORDS, Log
from tests.client.scripted_broker import ScriptedBroker


def write(servers: str, topic: str, *values: bytes, partition: int = 0) -> None:
    with Producer(servers) as producer:
        for value in values:
            producer.send(topic, value, partition=partition).result()


def read_until(consumer: Consumer, enough: Callable[[list[bytes]], bool]) -> list[bytes]:
    found: list[bytes] = []
    deadline = time.monotonic() + 10
    while not enough(found) and time.monotonic() < deadline:
        found += [record.value for record in consumer.poll(0.1)]
    return found


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"pattern": "fruit-.*"}, {"fruit-apple", "fruit-pear"}),
        ({"pattern": "fruit-.*", "exclude": ".*pear"}, {"fruit-apple"}),
        ({"pattern": re.compile("FRUIT-a.*", re.I)}, {"fruit-apple"}),
        ({"pattern": "fruit"}, set()),
    ],
)
def test_topics_whose_whole_names_match(servers: str, options: dict[str, str], expected: set[str]) -> None:
    write(servers, "fruit-apple", b"1")
    write(servers, "fruit-pear", b"2")
    write(servers, "no-fruit-stone", b"3")
    with Consumer(servers, until="end", **options) as consumer:  # type: ignore[arg-type]
        assert consumer.subscription == expected
        assert {record.topic for record in consumer} == expected


def test_a_blacklist_alone_means_all_others_but_kafkas_own(servers: str) -> None:
    write(servers, "black", b"1")
    write(servers, "white", b"2")
    with Consumer(servers, "white", group="maker-of-the-offsets-topic") as consumer:
        read_until(consumer, lambda found: len(found) == 1)
    with Consumer(servers, exclude="black|fruit.*") as consumer:
        assert "white" in consumer.subscription
        assert not {"black", "__consumer_offsets"} & consumer.subscription


def test_an_invalid_pattern_is_refused() -> None:
    with pytest.raises(ValueError, match=r"pattern '\(' is not a regular expression"):
        Consumer("127.0.0.1:1", pattern="(")


def test_topics_that_are_created_later_are_read_from_their_beginning(servers: str) -> None:
    write(servers, "late-1", b"old")
    with Consumer(servers, pattern="late-.*", offset="latest", metadata_max_age=0.05) as consumer:
        assert consumer.poll(0.1) == []
        write(servers, "late-2", b"new")
        assert read_until(consumer, bool) == [b"new"]
        assert consumer.subscription == {"late-1", "late-2"}


def test_partitions_that_are_created_later_are_read_from_their_beginning(servers: str) -> None:
    write(servers, "grows", b"old")
    with Consumer(servers, "grows", offset="latest", metadata_max_age=0.05) as consumer:
        assert consumer.poll(0.1) == []
        with Admin(servers) as admin:
            admin.create_partitions({"grows": 5})
        write(servers, "grows", b"new", partition=4)
        assert read_until(consumer, bool) == [b"new"]
        assert len(consumer.assignment) == 5


def test_a_topic_that_one_answer_leaves_out_is_not_read_again() -> None:
    looks = 0

    def leave_out_the_second_time(request: MetadataRequest) -> MetadataResponse:
        nonlocal looks
        looks += not request.topics
        names = [] if not request.topics and looks == 2 else ["t"]
        asked = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
        return broker._metadata(MetadataRequest(topics=asked))

    with ScriptedBroker(Log(encode_batch(RECORDS), 4)) as broker:
        broker.metadata = leave_out_the_second_time
        with Consumer(broker.address, pattern="t", metadata_max_age=0.01) as consumer:
            found: list[ConsumerRecord] = []
            while looks < 4:
                found += consumer.poll(0.02)
            found += consumer.poll(0.1)
            assert [record.offset for record in found] == [0, 1, 2, 3]


@pytest.mark.parametrize("group", [None, "keeps-its-topics"])
def test_a_subscription_that_fails_changes_nothing(servers: str, group: str | None) -> None:
    topic = f"there-{group}"
    write(servers, topic, b"1")
    with Consumer(servers, topic, group=group) as consumer:
        with pytest.raises(KafkaError, match="not-there"):
            consumer.subscribe("not-there")
        assert consumer.subscription == {topic}
        assert read_until(consumer, bool) == [b"1"]


def test_another_subscription_replaces_the_first(servers: str) -> None:
    write(servers, "first", b"1")
    write(servers, "second", b"2")
    with Consumer(servers, "first") as consumer:
        assert read_until(consumer, bool) == [b"1"]
        consumer.subscribe("second")
        assert read_until(consumer, bool) == [b"2"]
        assert {partition.topic for partition in consumer.assignment} == {"second"}
        consumer.unsubscribe()
        assert not consumer.assignment
        assert not consumer.subscription
        with pytest.raises(ValueError, match="nothing to read: subscribe"):
            consumer.poll()


def test_a_topic_that_is_deleted_is_an_error_that_names_it(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hmb.client.consuming.partition_errors.GONE_AFTER", 0.3)
    write(servers, "doomed", b"1")
    write(servers, "spared", b"2")
    with Consumer(servers, "doomed", "spared", max_wait_ms=50) as consumer, Admin(servers) as admin:
        assert sorted(read_until(consumer, lambda found: len(found) == 2)) == [b"1", b"2"]
        admin.delete_topics(["doomed"])
        with pytest.raises(KafkaError, match="there is no topic 'doomed'") as caught:
            read_until(consumer, bool)
        assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        consumer.subscribe("spared")
        assert read_until(consumer, bool) == [b"2"]


def test_a_deleted_topic_no_longer_matches_a_pattern(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hmb.client.consuming.partition_errors.GONE_AFTER", 0.1)
    write(servers, "pat-1", b"1")
    write(servers, "pat-2", b"2")
    with Consumer(servers, pattern="pat-.*", max_wait_ms=50, metadata_max_age=0.1) as consumer, Admin(servers) as admin:
        read_until(consumer, lambda found: len(found) == 2)
        admin.delete_topics(["pat-1"])
        deadline = time.monotonic() + 10
        while len(consumer.assignment) == 6 and time.monotonic() < deadline:
            assert consumer.poll(0.05) == []
        assert {partition.topic for partition in consumer.assignment} == {"pat-2"}


def test_a_topic_that_was_created_again_is_not_mistaken_for_the_old_one(servers: str) -> None:
    partition = TopicPartition("twice", 0)
    write(servers, "twice", b"old", b"older")
    with Consumer(servers, "twice", partitions=[0], max_wait_ms=50) as consumer, Admin(servers) as admin:
        assert read_until(consumer, lambda found: len(found) == 2) == [b"old", b"older"]
        admin.delete_topics(["twice"])
        write(servers, "twice", b"1", b"2", b"3", b"4")
        with pytest.raises(KafkaError, match="twice-0 was deleted and created again since offset 2: seek to"):
            read_until(consumer, bool)
        consumer.seek_to_beginning(partition)
        assert read_until(consumer, lambda found: len(found) == 4) == [b"1", b"2", b"3", b"4"]


def test_in_a_group_a_topic_that_was_created_again_is_read_from_its_beginning(servers: str) -> None:
    write(servers, "again", b"old", b"older")
    with Consumer(servers, "again", group="again", max_wait_ms=50) as consumer, Admin(servers) as admin:
        assert read_until(consumer, lambda found: len(found) == 2) == [b"old", b"older"]
        admin.delete_topics(["again"])
        write(servers, "again", b"1", b"2", b"3")
        assert read_until(consumer, lambda found: len(found) == 3) == [b"1", b"2", b"3"]


@pytest.mark.parametrize("options", [{}, {"group": "waits-for-a-topic"}], ids=["alone", "group"])
def test_a_named_topic_that_is_created_later_is_read_from_its_start(servers: str, options: dict[str, str]) -> None:
    topic = f"created-later-{len(options)}"
    waiting = Consumer(servers, topic, offset="latest", wait_for_topics=True, **options)  # type: ignore[arg-type]
    with waiting as consumer:
        assert consumer.subscription == frozenset()
        write(servers, topic, b"1", b"2")
        assert read_until(consumer, lambda found: len(found) == 2) == [b"1", b"2"]
        assert consumer.subscription == {topic}


def test_a_named_topic_must_exist_by_default(servers: str) -> None:
    with pytest.raises(KafkaError, match="there is no topic 'never-created'"):
        Consumer(servers, "never-created")
