"""What takes several things: a text or a wrong dict is an error before anything is sent, and says what to write."""

from collections.abc import Callable
from typing import Any

import pytest

from hmb.client import TopicPartition
from hmb.client.admin import Admin, ConfigResource, ResourceType

T0 = TopicPartition("t", 0)
TOPIC = ConfigResource(ResourceType.TOPIC, "t")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda admin: admin.create_topics("ab"), r"for example \[\"a\", NewTopic\(\"b\", partitions=3\)\], not 'ab'"),
        (lambda admin: admin.create_topics({"ab": 3}), r"NewTopic\(\"b\", partitions=3\)\], not {'ab': 3}"),
        (lambda admin: admin.create_topics([("ab", 3)]), r"\('ab', 3\) is none"),
        (lambda admin: admin.create_topics(5), "not 5"),
        (lambda admin: admin.delete_topics("ab"), r"topics to delete are several, for example \[\"a\", \"b\"\], not"),
        (lambda admin: admin.delete_topics(b"ab"), "not b'ab'"),
        (lambda admin: admin.delete_topics({"ab": 1}), "not {'ab': 1}"),
        (lambda admin: admin.delete_topics([b"ab"]), "b'ab' is none"),
        (lambda admin: admin.describe_topics("ab"), "topics to describe"),
        (lambda admin: admin.create_partitions("ab"), 'are a dict, for example {"t": 6}, not'),
        (lambda admin: admin.create_partitions(["ab"]), 'are a dict, for example {"t": 6}, not'),
        (lambda admin: admin.list_groups("Stable"), r"states are several, for example \[\"Stable\"\]"),
        (lambda admin: admin.list_groups(types="classic"), "types are several"),
        (lambda admin: admin.describe_groups("ab"), "groups are several"),
        (lambda admin: admin.delete_groups("ab"), "groups are several"),
        (lambda admin: admin.remove_members("g", member_ids="ab"), "member ids are several"),
        (lambda admin: admin.remove_members("g", group_instance_ids="ab"), "group instance ids are several"),
        (lambda admin: admin.list_group_offsets("g", "ab"), r"\[TopicPartition\(\"t\", 0\)\]"),
        (lambda admin: admin.list_group_offsets("g", T0), "put it in a list"),
        (lambda admin: admin.alter_group_offsets("g", {"t": 1}), "'t' is none"),
        (lambda admin: admin.alter_group_offsets("g", [T0]), r"{TopicPartition\(\"t\", 0\): 5}"),
        (lambda admin: admin.delete_group_offsets("g", "ab"), "partitions are several"),
        (lambda admin: admin.describe_lag("g", "ab"), "partitions are several"),
        (lambda admin: admin.plan_reset("g", "ab", "latest"), "partitions are several"),
        (lambda admin: admin.list_offsets([T0]), "offsets to list are a dict"),
        (lambda admin: admin.list_offsets({("t", 0): "latest"}), r"\('t', 0\) is none"),
        (lambda admin: admin.delete_records({"t": 5}), "'t' is none"),
        (lambda admin: admin.describe_producers("ab"), "partitions are several"),
        (lambda admin: admin.elect_leaders("ab"), "partitions are several"),
        (lambda admin: admin.describe_log_dirs("01"), r"brokers are several, for example \[0, 1\]"),
        (lambda admin: admin.describe_configs("ab"), "resources are several"),
        (lambda admin: admin.describe_configs(TOPIC), "is none"),
        (lambda admin: admin.describe_configs([TOPIC], names="ab"), "names are several"),
        (lambda admin: admin.alter_configs(TOPIC, set="ab"), "settings to set are a dict"),
        (lambda admin: admin.alter_configs(TOPIC, delete="retention.ms"), "settings to delete are several"),
    ],
)
def test_a_text_was_taken_for_a_list_of_its_letters(call: Callable[[Admin], Any], message: str) -> None:
    with Admin("127.0.0.1:1") as admin, pytest.raises(TypeError, match=message):
        call(admin)
