"""Tests of arguments of a wrong type, such as a str instead of a list. The error message shows the correct type."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from hmb.client import Consumer, Producer, TopicPartition
from hmb.client.admin import Admin, ConfigResource, ResourceType
from hmb.client.offsets import AtTime

T0 = TopicPartition("t", 0)
TOPIC = ConfigResource(ResourceType.TOPIC, "t")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda admin: admin.create_topics("ab"), r"for example \[\"a\", NewTopic\(\"b\", partitions=3\)\], not 'ab'"),
        (lambda admin: admin.create_topics({"ab": 3}), r"NewTopic\(\"b\", partitions=3\)\], not {'ab': 3}"),
        (lambda admin: admin.create_topics([("ab", 3)]), r"\('ab', 3\) has the wrong type"),
        (lambda admin: admin.create_topics(5), "not 5"),
        (
            lambda admin: admin.delete_topics("ab"),
            r"topics to delete must be a list, for example \[\"a\", \"b\"\], not",
        ),
        (lambda admin: admin.delete_topics(b"ab"), "not b'ab'"),
        (lambda admin: admin.delete_topics({"ab": 1}), "not {'ab': 1}"),
        (lambda admin: admin.delete_topics([b"ab"]), "b'ab' has the wrong type"),
        (lambda admin: admin.describe_topics("ab"), "topics to describe"),
        (lambda admin: admin.create_partitions("ab"), 'must be a dict, for example {"t": 6}, not'),
        (lambda admin: admin.create_partitions(["ab"]), 'must be a dict, for example {"t": 6}, not'),
        (lambda admin: admin.list_groups("Stable"), r"states must be a list, for example \[\"Stable\"\]"),
        (lambda admin: admin.list_groups(types="classic"), "types must be a list"),
        (lambda admin: admin.describe_groups("ab"), "groups must be a list"),
        (lambda admin: admin.delete_groups("ab"), "groups must be a list"),
        (lambda admin: admin.remove_members("g", member_ids="ab"), "member ids must be a list"),
        (lambda admin: admin.remove_members("g", group_instance_ids="ab"), "group instance ids must be a list"),
        (lambda admin: admin.list_group_offsets("g", "ab"), r"\[TopicPartition\(\"t\", 0\)\]"),
        (lambda admin: admin.list_group_offsets("g", T0), "must be a list of partitions"),
        (lambda admin: admin.alter_group_offsets("g", {"t": 1}), "'t' has the wrong type"),
        (lambda admin: admin.alter_group_offsets("g", [T0]), r"{TopicPartition\(\"t\", 0\): 5}"),
        (lambda admin: admin.delete_group_offsets("g", "ab"), "partitions must be a list"),
        (lambda admin: admin.describe_lag("g", "ab"), "partitions must be a list"),
        (lambda admin: admin.plan_reset("g", "ab", "latest"), "partitions must be a list"),
        (lambda admin: admin.plan_share_reset("g", "ab", "latest"), "partitions must be a list"),
        (lambda admin: admin.list_offsets([T0]), "offsets to list must be a dict"),
        (lambda admin: admin.list_offsets({("t", 0): "latest"}), r"\('t', 0\) has the wrong type"),
        (lambda admin: admin.delete_records({"t": 5}), "'t' has the wrong type"),
        (lambda admin: admin.describe_producers("ab"), "partitions must be a list"),
        (lambda admin: admin.elect_leaders("ab"), "partitions must be a list"),
        (lambda admin: admin.describe_log_dirs("01"), r"brokers must be a list, for example \[0, 1\]"),
        (lambda admin: admin.describe_configs("ab"), "resources must be a list"),
        (lambda admin: admin.describe_configs(TOPIC), "has the wrong type"),
        (lambda admin: admin.describe_configs([TOPIC], names="ab"), "names must be a list"),
        (lambda admin: admin.alter_configs(TOPIC, set="ab"), "settings to set must be a dict"),
        (lambda admin: admin.alter_configs(TOPIC, delete="retention.ms"), "settings to delete must be a list"),
    ],
)
def test_a_string_is_not_a_list_of_letters(call: Callable[[Admin], Any], message: str) -> None:
    with Admin("127.0.0.1:1") as admin, pytest.raises(TypeError, match=message):
        call(admin)


@pytest.mark.parametrize(
    ("topics", "options", "message"),
    [
        ((["a", "b"],), {}, r'separate argument, as in subscribe\("a", "b"\), but \[.*\] is a list'),
        ((b"a",), {}, "a topic's name must be a str, not b'a'"),
        (("a",), {"group": 5}, "a group's name must be a str, not 5"),
        (("a",), {"offset": AtTime(cast(Any, datetime.now(UTC)))}, r"int\(when.timestamp\(\) \* 1000\)"),
    ],
)
def test_a_mistake_with_a_new_consumer_gets_a_clear_message(
    topics: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        Consumer("127.0.0.1:1", *topics, **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda it: it.seek(("t", 0), 5), r"a partition must be TopicPartition\('t', 0\), not \('t', 0\)"),
        (lambda it: it.seek("t", 5), r"a partition must be TopicPartition\(topic, number\), not 't'"),
        (
            lambda it: it.seek("t", 0, 5),
            r"pass the topic and the partition number as one object: seek\(TopicPartition\('t', 0\), 5\)",
        ),
        (lambda it: it.pause("t"), "a partition must be TopicPartition"),
        (lambda it: it.position(("t", 0)), "a partition must be TopicPartition"),
        (lambda it: it.seek_to_time(datetime.now(UTC)), r"int\(when.timestamp\(\) \* 1000\)"),
        (lambda it: it.offsets_for_time(datetime.now(UTC), [T0]), r"int\(when.timestamp\(\) \* 1000\)"),
        (lambda it: it.end_offsets("ab"), "partitions must be a list"),
        (lambda it: it.assign("ab"), "partitions must be a list"),
        (lambda it: it.subscribe(["a", "b"]), "a separate argument"),
    ],
)
def test_a_mistake_with_a_consumer_gets_a_clear_message(call: Callable[[Any], Any], message: str) -> None:
    with Consumer("127.0.0.1:1") as consumer, pytest.raises(TypeError, match=message):
        call(consumer)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"topic": b"t", "value": b""}, "a topic's name must be a str, not b't'"),
        (
            {"topic": "t", "value": b"", "headers": {"a": b"b"}},
            r"a list of \(name, value\) pairs, for example",
        ),
        ({"topic": "t", "value": b"", "headers": {"ab": b"b"}}, "'ab' is not a pair"),
        ({"topic": "t", "value": b"", "headers": [b"ab"]}, "b'ab' is not a pair"),
    ],
)
def test_a_mistake_with_send_gets_a_clear_message(arguments: dict[str, Any], message: str) -> None:
    with Producer("127.0.0.1:1") as producer, pytest.raises(TypeError, match=message):
        producer.send(**arguments)
