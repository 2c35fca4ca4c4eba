"""Tests of the removal of committed offsets: after OffsetDelete, after their expiry, and with a deleted topic."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from hmb.coordinator import group_expiry
from hmb.coordinator.group import Group
from hmb.coordinator.journal.records import OffsetCommitKey, decode_key
from hmb.coordinator.offsets import Expiry
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.create_partitions import CreatePartitionsRequest
from hmb.protocol.messages.delete_topics import DeleteTopicsRequest
from hmb.protocol.messages.describe_groups import DescribeGroupsRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.topics import NO_TOPIC_ID
from hmb.storage.state import trash
from tests.broker.conftest import Asker
from tests.broker.groups.offset_calls import commit, delete, fetch, join, offsets, restarted
from tests.storage.conftest import read_all


@pytest.fixture
def ask(make_asker: Callable[..., Asker]) -> Asker:
    """Return a client without a socket (`Asker`) for a broker that has the topic t and a group coordinator."""
    asker = make_asker()
    asker.broker.topics.create("t", 3)
    asker.broker.groups.make_topic()
    return asker


def errors(answer: Any) -> dict[str, list[tuple[int, int]]]:
    return {topic.name: [(p.partition_index, p.error_code) for p in topic.partitions] for topic in answer.topics}


def test_offsets_are_deleted_one_by_one(ask: Asker) -> None:
    commit(ask, {0: 1, 1: 2})
    answer = delete(ask, {"t": [0, 2, 9], "nosuch": [0]})
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answer.error_code == 0
    assert errors(answer) == {"t": [(9, unknown), (0, 0), (2, 0)], "nosuch": [(0, unknown)]}
    assert offsets(ask) == {1: 2}


def test_offsets_of_groups_that_cannot_lose_them(ask: Asker) -> None:
    assert delete(ask, {"t": [0]}, "nosuch").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert delete(ask, {"t": [0]}, "").error_code == ErrorCode.INVALID_GROUP_ID
    commit(ask, {0: 1})
    ask.broker.topics.create("u", 1)
    commit(ask, {0: 2}, topic="u")
    join(ask)
    answer = delete(ask, {"t": [0], "u": [0]})
    assert errors(answer) == {"t": [(0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)], "u": [(0, 0)]}
    assert fetch(ask, None) == {0: (1, -1, "", 0)}


# -- expiry of offsets


def test_a_retention_time_that_ends_after_the_last_int64_is_allowed(ask: Asker) -> None:
    assert commit(ask, {0: 7}, 2, retention_time_ms=2**63 - 1) == [(0, 0)]
    assert offsets(ask) == {0: 7}


def test_a_retention_time_of_the_request_is_the_offsets_own(ask: Asker) -> None:
    """In versions 2 to 4, an OffsetCommit request contains a retention time.

    The broker uses this time for the committed offsets.
    """
    commit(ask, {0: 1}, 2, retention_time_ms=0)
    commit(ask, {1: 1}, 4, retention_time_ms=1_000_000)
    commit(ask, {2: 1}, 5)
    ask.broker.groups.offsets.expire(1_000_000)
    assert offsets(ask) == {1: 1, 2: 1}
    ask.broker.groups.offsets.expire(0)
    assert offsets(ask) == {1: 1}


def test_a_commit_time_of_the_request_counts(ask: Asker) -> None:
    """In version 1, an OffsetCommit request contains the time of the commit.

    The broker uses this time for the expiry of the offsets.
    """
    commit(ask, {0: 1}, 1, commit_timestamp=5)
    commit(ask, {1: 1}, 1)
    ask.broker.groups.offsets.expire(1_000_000)
    assert offsets(ask) == {1: 1}


def test_a_group_is_removed_with_its_last_offset(ask: Asker, make_asker: Callable[..., Asker]) -> None:
    commit(ask, {0: 1})
    ask.broker.groups.offsets.expire(0)
    for each in (ask, restarted(ask, make_asker)):
        assert offsets(each) == {}
        assert each(DescribeGroupsRequest(groups=["g"]), 5).groups[0].group_state == "Dead"


def test_offsets_of_topics_that_a_group_reads_do_not_expire(ask: Asker) -> None:
    commit(ask, {0: 1})
    join(ask)
    ask.broker.groups.offsets.expire(0)
    assert offsets(ask) == {0: 1}


def test_the_offsets_of_other_groups_expire_although_one_group_fails(
    ask: Asker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If the expiry of offsets fails in one group, the offsets of the other groups still expire.

    Before a bug was fixed, an internal error in one group stopped the expiry in all others.
    """
    for group_id in ("bad", "good"):
        commit(ask, {0: 1}, group=group_id)
    when = group_expiry.expiry

    def failing(group: Group) -> Expiry | None:
        if group.group_id == "bad":
            raise ZeroDivisionError("planted")
        return when(group)

    monkeypatch.setattr("hmb.coordinator.offset_requests.expiry", failing)
    ask.broker.groups.offsets.expire(0)
    assert (offsets(ask, group="bad"), offsets(ask, group="good")) == ({0: 1}, {})
    assert "group bad: the offsets do not expire" in caplog.text and "planted" in caplog.text


# -- deletion and creation of topics


def test_a_deleted_topic_takes_its_offsets_along(ask: Asker, make_asker: Callable[..., Asker]) -> None:
    ask.broker.topics.create("u", 1)
    commit(ask, {0: 1})
    commit(ask, {0: 2}, topic="u")
    assert ask(DeleteTopicsRequest(topic_names=["t"]), 4).responses[0].error_code == 0
    ask.broker.topics.create("t", 3)
    assert fetch(ask, [0]) == {0: (-1, -1, "", 0)}
    ask = restarted(ask, make_asker)
    assert (fetch(ask, [0]), fetch(ask, [0], topic="u")) == ({0: (-1, -1, "", 0)}, {0: (2, -1, "", 0)})


def test_a_commit_in_a_topic_created_again_survives_the_removal_of_the_old_files(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(ask, {0: 1, 1: 1})
    empty = trash.empty

    def takes_its_time(directories: Iterable[Path]) -> None:
        monkeypatch.setattr(trash, "empty", empty)
        ask.broker.topics.create("t", 3)  # Create a new topic t before the files of the old topic t are removed.
        commit(ask, {0: 2})
        empty(directories)

    monkeypatch.setattr(trash, "empty", takes_its_time)
    ask.broker.topics.delete([ask.broker.topics.find("t", NO_TOPIC_ID)], ask.broker.groups.on_topics_deleted)
    assert offsets(ask) == {0: 2}


def test_an_offset_of_an_older_topic_of_that_name_is_ignored(ask: Asker) -> None:
    """A new topic does not use the offsets that a group committed for an older topic of the same name.

    If the broker crashes while it deletes a topic, the committed offsets for this topic may still exist.
    """
    commit(ask, {0: 1})
    older = ask.broker.topics.get("t")
    assert older is not None
    ask.broker.topics.delete([older])
    ask.broker.topics.create("t", 3)
    for version in (9, 10):
        assert fetch(ask, [0], version) == {0: (-1, -1, "", 0)}
        assert fetch(ask, None, version) == {}
    commit(ask, {0: 2})
    assert offsets(ask) == {0: 2}


def test_without_consumer_offsets_all_groups_are_forgotten(ask: Asker) -> None:
    commit(ask, {0: 1})
    assert ask(DeleteTopicsRequest(topic_names=["__consumer_offsets"]), 4).responses[0].error_code == 0
    assert commit(ask, {0: 2}) == [(0, ErrorCode.NOT_COORDINATOR)]
    assert ask(FindCoordinatorRequest(key="g"), 0).error_code == 0
    assert offsets(ask) == {}
    assert commit(ask, {0: 3}) == [(0, 0)]


def test_consumer_offsets_is_created_as_kafka_creates_it(make_asker: Callable[..., Asker]) -> None:
    ask = make_asker(offsets_topic_num_partitions="4", offsets_topic_segment_bytes="1000000")
    (answer,) = ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="__consumer_offsets")]), 9).topics
    assert (answer.error_code, answer.is_internal, len(answer.partitions)) == (0, True, 4)
    topic = ask.broker.topics.get("__consumer_offsets")
    assert topic is not None
    config = topic.partitions[3].config
    assert (config.compacts, config.deletes, config.segment_bytes) == (True, False, 1_000_000)


def test_partitions_that_are_added_to_consumer_offsets_move_no_group(ask: Asker) -> None:
    groups = [f"g{number}" for number in range(30)]
    for group in groups:
        commit(ask, {0: 1}, group=group)
    added = CreatePartitionsRequest.CreatePartitionsTopic(name="__consumer_offsets", count=60, assignments=None)
    assert ask(CreatePartitionsRequest(topics=[added]), 3).results[0].error_code == 0
    for group in groups:
        assert commit(ask, {0: 2}, group=group) == [(0, 0)]
        assert offsets(ask, group=group) == {0: 2}
    topic = ask.broker.topics.get("__consumer_offsets")
    assert topic is not None
    assert sorted(topic.partitions) == list(range(60))
    assert [number for number in range(50, 60) if topic.partitions[number].log_end_offset] == []


def test_commits_are_stored_where_kafka_looks_for_them(ask: Asker) -> None:
    commit(ask, {0: 1}, group="gc848")
    topic = ask.broker.topics.get("__consumer_offsets")
    assert topic is not None and len(topic.partitions) == 50
    (record,) = read_all(topic.partitions[6])
    assert record.key is not None and decode_key(record.key) == OffsetCommitKey(group="gc848", topic="t", partition=0)
