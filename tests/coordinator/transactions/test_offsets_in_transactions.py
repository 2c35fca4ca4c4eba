"""Tests of offsets that a transaction commits. These offsets are pending until a marker commits or aborts them."""

from __future__ import annotations

import threading

import pytest

from hmb.coordinator.journal.writing import Journal
from hmb.coordinator.offset_manager import OffsetManager
from hmb.coordinator.offsets import GroupOffsets
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import iter_batches
from hmb.records.producer_numbers import ProducerIdAndEpoch
from tests.coordinator.conftest import Topic
from tests.coordinator.test_offsets import NEVER_READ, T0, T1, U0, at
from tests.storage.transactions import ABORT, COMMIT

ONE, OTHER = ProducerIdAndEpoch(7, 0), ProducerIdAndEpoch(8, 0)


# Transactional offsets in memory


def test_pending_offsets_are_visible_when_their_transaction_commits() -> None:
    offsets = GroupOffsets()
    offsets.commit("g", {T0: at(1)})
    for producer, offset in ((7, 5), (8, 6)):
        offsets.commit_in_transaction("g", producer, {T0: at(offset), T1: at(offset)})
    assert (dict(offsets.of_group("g")), offsets.pending("g")) == ({T0: at(1)}, {T0, T1})
    offsets.end_transaction("g", 7, committed=True)
    assert (dict(offsets.of_group("g")), offsets.pending("g")) == ({T0: at(5), T1: at(5)}, {T0, T1})
    offsets.end_transaction("g", 8, committed=False)
    assert (dict(offsets.of_group("g")), offsets.pending("g")) == ({T0: at(5), T1: at(5)}, set())
    assert offsets.groups_with_pending() == []


def test_a_later_commit_outside_of_the_transaction_wins() -> None:
    offsets = GroupOffsets()
    offsets.commit_in_transaction("g", 7, {T0: at(5), T1: at(5)})
    offsets.commit("g", {T0: at(1)})
    assert offsets.pending("g") == {T0, T1}, "nobody knows yet"
    offsets.end_transaction("g", 7, committed=True)
    assert dict(offsets.of_group("g")) == {T0: at(1), T1: at(5)}


def test_deleted_offsets_are_no_longer_pending() -> None:
    offsets = GroupOffsets()
    offsets.commit_in_transaction("g", 7, {T0: at(5), U0: at(5)})
    offsets.delete("g", [T0])
    assert offsets.pending("g") == {U0}
    offsets.delete("g", [U0])
    offsets.end_transaction("g", 7, committed=True)
    assert dict(offsets.of_group("g")) == {}


def test_pending_offsets_do_not_expire() -> None:
    offsets = GroupOffsets()
    offsets.commit("g", {T0: at(1), T1: at(1)})
    offsets.commit_in_transaction("g", 7, {T0: at(5)})
    assert offsets.expired("g", 1_000, 100, NEVER_READ) == [T1]


# Transactional offsets with the journal


@pytest.fixture
def manager(journal: Journal) -> OffsetManager:
    return OffsetManager(journal)


def restarted(topic: Topic) -> OffsetManager:
    topic.reopen()
    journal = Journal(topic, must_sync=lambda: False)
    manager = OffsetManager(journal)
    journal.load(manager.replay, threading.Event())
    return manager


def test_each_transaction_has_separate_batches(journal: Journal, manager: OffsetManager, topic: Topic) -> None:
    """The journal stores five commits with one write, in the order of the commits.

    Two of the commits are in transactions, so they need batches of their own.
    """
    places = [
        manager.begin_commit("g", {T0: at(1)}),
        manager.begin_commit("g", {T0: at(2)}, ONE),
        manager.begin_commit("g", {T0: at(3)}, OTHER),
        manager.begin_commit("g", {T1: at(4)}),
        manager.begin_commit("h", {T1: at(5)}),
    ]
    for place in places:
        journal.write(place)
    region = topic.opened[0].read(0, 1 << 20).records
    assert region is not None
    found = [(each.is_transactional, each.producer_id, each.records_count) for each in iter_batches(region.read())]  # type: ignore[union-attr]
    assert found == [(False, -1, 1), (True, 7, 1), (True, 8, 1), (False, -1, 2)]


def test_a_marker_ends_the_offsets_of_its_partition_also_after_a_restart(
    journal: Journal, manager: OffsetManager, topic: Topic
) -> None:
    for producer, group in ((ONE, "g"), (ONE, "h"), (OTHER, "g")):
        journal.write(manager.begin_commit(group, {T0: at(producer.producer_id)}, producer))
    journal.write(manager.begin_end_transaction(0, COMMIT, ONE))
    for found in (manager, restarted(topic)):
        assert found.fetch("g") == found.fetch("h") == {T0: at(7)}
        assert (found.pending("g"), found.pending("h")) == ({T0}, set())
    again = restarted(topic)
    journal.write(again.begin_end_transaction(0, ABORT, OTHER))
    assert (again.fetch("g"), again.pending("g")) == ({T0: at(7)}, set())
    assert restarted(topic).pending("g") == set()


def test_a_zombies_marker_and_offsets_are_refused(journal: Journal, manager: OffsetManager) -> None:
    newer = ProducerIdAndEpoch(7, 3)
    journal.write(manager.begin_end_transaction(0, ABORT, newer))
    with pytest.raises(KafkaError) as caught:
        journal.write(manager.begin_end_transaction(0, COMMIT, ONE))
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    with pytest.raises(KafkaError) as caught:
        journal.write(manager.begin_commit("g", {T0: at(1)}, ONE))
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert manager.pending("g") == set()


def test_the_deletion_of_pending_offsets_is_written(journal: Journal, manager: OffsetManager, topic: Topic) -> None:
    journal.write(manager.begin_commit("g", {T0: at(1)}, ONE))
    journal.write(manager.begin_delete("g", [T0]))
    journal.write(manager.begin_end_transaction(0, COMMIT, ONE))
    for found in (manager, restarted(topic)):
        assert found.fetch("g") == {}
