"""Tests of committed offsets: the table in memory, and its restoration from the journal."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from hmb.coordinator.journal.records import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
)
from hmb.coordinator.journal.writing import Journal
from hmb.coordinator.offset_manager import OffsetManager
from hmb.coordinator.offsets import CommittedOffset, Expiry, GroupOffsets
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition
from hmb.storage.compaction.cleaner import clean, cleanable
from hmb.storage.compaction.throttle import Throttle
from hmb.units import now_ms
from tests.coordinator.conftest import Topic
from tests.storage.conftest import read_all

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
OLD = UUID(int=1)  # the id of the topic before it was created again
NEXT_YEAR = now_ms() + 365 * 24 * 60 * 60 * 1000
NEVER_READ = Expiry(since=lambda committed: committed.commit_timestamp, is_read=lambda topic: False)


def at(offset: int, *, timestamp: int = 0, expires: int = -1, metadata: str = "") -> CommittedOffset:
    return CommittedOffset(offset, -1, metadata, timestamp, expires)


# Offsets in memory


def test_offsets_belong_to_their_group() -> None:
    offsets = GroupOffsets()
    offsets.commit("g", {T0: at(1), T1: at(2)})
    offsets.commit("g", {T1: at(3)})
    offsets.commit("h", {U0: at(9)})
    assert dict(offsets.of_group("g")) == {T0: at(1), T1: at(3)}
    offsets.delete("g", [T0, U0, T1])
    assert dict(offsets.of_group("g")) == {}
    assert dict(offsets.of_group("h")) == {U0: at(9)}


@pytest.mark.parametrize(
    ("committed", "now", "is_expired"),
    [
        (at(1, timestamp=1_000), 1_099, False),
        (at(1, timestamp=1_000), 1_100, True),
        (at(1, timestamp=1_000, expires=1_050), 1_049, False),
        (at(1, timestamp=1_000, expires=1_050), 1_050, True),
        # The expiry time of a commit has priority over the retention of the broker.
        (at(1, timestamp=1_000, expires=5_000), 4_000, False),
    ],
)
def test_an_offset_expires_after_its_retention(committed: CommittedOffset, now: int, is_expired: bool) -> None:
    offsets = GroupOffsets()
    offsets.commit("g", {T0: committed})
    assert offsets.expired("g", now, 100, NEVER_READ) == [T0] * is_expired


def test_expiry_counts_from_when_the_group_became_empty() -> None:
    offsets = GroupOffsets()
    offsets.commit("g", {T0: at(1, timestamp=0), U0: at(1, timestamp=0)})
    emptied = Expiry(since=lambda committed: 5_000, is_read=lambda topic: False)
    assert offsets.expired("g", 5_099, 100, emptied) == []
    assert offsets.expired("g", 5_100, 100, emptied) == [T0, U0]


def test_offsets_of_subscribed_topics_do_not_expire() -> None:
    offsets = GroupOffsets()
    offsets.commit("g", {T0: at(1), U0: at(1)})
    assert offsets.expired("g", 1_000, 100, NEVER_READ._replace(is_read=lambda topic: topic == "t")) == [U0]


# Offsets with the journal


@pytest.fixture
def manager(journal: Journal) -> OffsetManager:
    return OffsetManager(journal)


Commit = Callable[..., None]


@pytest.fixture
def commit(journal: Journal, manager: OffsetManager) -> Commit:
    def commit(group_id: str, **offsets: CommittedOffset) -> None:
        partitions = {"t0": T0, "t1": T1, "u0": U0}
        journal.write(manager.begin_commit(group_id, {partitions[name]: each for name, each in offsets.items()}))

    return commit


def restarted(topic: Topic) -> OffsetManager:
    topic.reopen()
    journal = Journal(topic, must_sync=lambda: False)
    manager = OffsetManager(journal)
    journal.load(manager.replay, threading.Event())
    return manager


def test_a_fetch_returns_a_commit_unchanged(manager: OffsetManager, commit: Commit, topic: Topic) -> None:
    sent = CommittedOffset(5, 3, 'ü "\n\0', 1_000, -1, UUID(int=7))
    old = CommittedOffset(6, -1, "", 1_000, 2_000)
    commit("g", t0=sent, t1=old)
    for found in (manager, restarted(topic)):
        assert found.fetch("g", [T0, T1, U0]) == {T0: sent, T1: old}
        assert found.fetch("h") == {}


def test_commits_are_records_as_kafka_writes_them(commit: Commit, topic: Topic) -> None:
    commit("g", t0=at(5, metadata="m"), t1=at(6, expires=2_000))
    first, second = read_all(topic.opened[0])
    assert first.key is not None and first.value is not None and second.value is not None
    key = decode_key(first.key)
    assert key == OffsetCommitKey(group="g", topic="t", partition=0)
    assert first.value[:2] == b"\0\4"
    assert second.value[:2] == b"\0\1", "the only version that has a time to expire"
    assert decode_value(key, first.value) == OffsetCommitValue(offset=5, metadata="m")


def test_an_offset_is_not_seen_before_it_is_durable(journal: Journal, manager: OffsetManager) -> None:
    pending = manager.begin_commit("g", {T0: at(5)})
    assert manager.fetch("g") == {}
    journal.write(pending)
    assert manager.fetch("g") == {T0: at(5)}


def test_the_last_commit_in_the_queue_wins(journal: Journal, manager: OffsetManager, topic: Topic) -> None:
    older, newer = (manager.begin_commit("g", {T0: at(offset)}) for offset in (5, 6))
    journal.write(newer)
    journal.write(older)
    assert manager.fetch("g") == {T0: at(6)}
    assert restarted(topic).fetch("g") == {T0: at(6)}


def test_a_commit_that_is_too_large_for_the_log_is_refused_before_its_records_are_in_memory(
    manager: OffsetManager, journal: Journal
) -> None:
    """The coordinator refuses a commit that is too large for the log, before it builds the commit's records.

    Each record contains the group id, so a long group id makes a commit of many partitions large.
    """
    group_id = "g" * 30_000
    offsets = {TopicPartition("t", number): at(1) for number in range(16_000)}  # 16,000 records of 30 KB: 480 MB
    tracemalloc.start()
    try:
        with pytest.raises(KafkaError, match=r"the commit needs more than 1048588 bytes") as caught:
            manager.begin_commit(group_id, offsets)
        assert tracemalloc.get_traced_memory()[1] < 4 * 1024 * 1024
    finally:
        tracemalloc.stop()
    assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    few = dict(list(offsets.items())[:10])
    journal.write(manager.begin_commit(group_id, few))
    assert manager.fetch(group_id) == few


def test_deleted_offsets_do_not_return_after_a_restart(
    journal: Journal, manager: OffsetManager, commit: Commit, topic: Topic
) -> None:
    commit("g", t0=at(1), t1=at(2))
    journal.write(manager.begin_delete("g", [T0, T0, U0]))
    assert [record.value for record in read_all(topic.opened[0])][2:] == [None], "a tombstone for what was there"
    assert manager.fetch("g").keys() == restarted(topic).fetch("g").keys() == {T1}


def test_a_deletion_covers_commits_that_are_not_written_yet(journal: Journal, manager: OffsetManager) -> None:
    manager.begin_commit("g", {T0: at(1)})
    journal.write(manager.begin_delete("g", [T0]))
    assert manager.fetch("g") == {}


def test_an_offset_that_is_committed_again_does_not_expire(manager: OffsetManager, commit: Commit) -> None:
    commit("g", t0=at(1, timestamp=0))
    manager.begin_commit("g", {T0: at(2, timestamp=1_000)})
    assert manager.expired("g", 1_000, 100, NEVER_READ) == []


def test_compaction_does_not_change_the_offsets(
    journal: Journal, manager: OffsetManager, commit: Commit, topic: Topic
) -> None:
    log = topic.opened[0]
    log.reconfigure(replace(topic.config, segment_bytes=600, min_cleanable_dirty_ratio=0, delete_retention_ms=0))
    for offset in range(50):
        commit("g", t0=at(offset), t1=at(2 * offset))
        commit(f"h{offset % 3}", u0=at(offset))
    journal.write(manager.begin_delete("h1", None))
    before = [manager.fetch(group_id) for group_id in ("g", "h0", "h1", "h2")]
    for _ in range(2):  # The first round of compaction always keeps tombstones.
        work = cleanable(log, 0, NEXT_YEAR)
        assert work is not None
        clean(log, work, max_memory=1_000_000, now=NEXT_YEAR, throttle=Throttle(float("inf"), threading.Event()))
    assert len(read_all(log)) < 20
    again = restarted(topic)
    assert [again.fetch(group_id) for group_id in ("g", "h0", "h1", "h2")] == before


def test_a_deleted_topic_takes_its_offsets_along(manager: OffsetManager, commit: Commit, topic: Topic) -> None:
    commit("g", t0=at(1), u0=at(2))
    commit("h", t1=at(3))
    for group_id in ("g", "h"):
        manager.delete_topics(group_id, {"t": OLD})
    for found in (manager, restarted(topic)):
        assert (found.fetch("g"), found.fetch("h")) == ({U0: at(2)}, {})


def test_a_commit_in_the_next_topic_of_that_name_is_not_wiped_with_the_old_one(
    journal: Journal, manager: OffsetManager, commit: Commit
) -> None:
    commit("g", t0=at(1)._replace(topic_id=OLD), t1=at(2)._replace(topic_id=OLD))
    new = at(3)._replace(topic_id=UUID(int=2))
    under_way = manager.begin_commit("g", {T0: new})
    manager.delete_topics("g", {"t": OLD})
    journal.write(under_way)
    assert manager.fetch("g") == {T0: new}


def test_all_offsets_are_removed_with_consumer_offsets(manager: OffsetManager, commit: Commit, topic: Topic) -> None:
    commit("g", t0=at(1))
    topic.opened = {}
    manager.forget_all()
    assert manager.fetch("g") == {}
    with pytest.raises(KafkaError):
        manager.begin_commit("g", {T0: at(2)})


def test_offsets_of_kafka_082_are_replayed(manager: OffsetManager) -> None:
    key = LegacyOffsetCommitKey(group="g", topic="t", partition=0)
    manager.replay(key, LegacyOffsetCommitValue(offset=5, metadata="m", commit_timestamp=9), None)
    assert manager.fetch("g") == {T0: at(5, timestamp=9, metadata="m")}
