"""Tests of a KIP-848 group and of its heartbeats."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hmb.coordinator.consumer.member import ConsumerMember
from hmb.coordinator.consumer.states import MemberState
from hmb.coordinator.group import Commit
from hmb.coordinator.offsets import CommittedOffset
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from hmb.protocol.topics import PartitionId, TopicPartition
from tests.coordinator.consumer.consumer_driver import Client, ConsumerDriver, Topics
from tests.coordinator.settings import consumer_group_settings


@pytest.fixture
def driver() -> ConsumerDriver:
    return ConsumerDriver()


def numbers(response: ConsumerGroupHeartbeatResponse) -> list[int] | None:
    """Return the numbers of the assigned partitions, or None if the response has no assignment."""
    if response.assignment is None:
        return None
    return [number for topic in response.assignment.topic_partitions for number in topic.partitions]


def owned(driver: ConsumerDriver, *partitions: int, topic: str = "a") -> list[PartitionId]:
    return [PartitionId(driver.topics.id(topic), number) for number in partitions]


@contextmanager
def refused(code: ErrorCode) -> Iterator[None]:
    with pytest.raises(KafkaError) as error:
        yield
    assert error.value.code is code


def settled(driver: ConsumerDriver, *clients: Client) -> None:
    for _ in range(4):
        for client in clients:
            client.beat()
    assert driver.group.state_name == "Stable"


def test_the_first_member_gets_everything_at_once(driver: ConsumerDriver) -> None:
    assert driver.group.state_name == "Empty"
    answer = driver.join("m")
    assert (answer.member_id, answer.heartbeat_interval_ms, numbers(answer)) == ("m", 5_000, [0, 1, 2, 3])
    assert answer.member_epoch == driver.group.state.epoch == driver.group.state.assignment_epoch
    assert driver.group.state_name == "Stable"
    assert numbers(driver.beat("m", answer.member_epoch)) is None, "nothing is new"


def test_a_partition_gets_a_new_owner_after_the_old_one_gave_it_up(driver: ConsumerDriver) -> None:
    first = driver.join("m")
    second = driver.join("n")
    assert numbers(second) == [], "all partitions are m's still"
    assert second.member_epoch == first.member_epoch + 1
    response = driver.beat("m", first.member_epoch, owns=owned(driver, 0, 1, 2, 3))
    assert (response.member_epoch, numbers(response)) == (first.member_epoch, [0, 1]), "give up 2 and 3"
    assert driver.group.state_name == "Reconciling"
    assert numbers(driver.beat("n", second.member_epoch, owns=[])) is None
    done = driver.beat("m", first.member_epoch, owns=owned(driver, 0, 1))
    assert (done.member_epoch, numbers(done)) == (second.member_epoch, None)
    assert numbers(driver.beat("n", second.member_epoch, owns=[])) == [2, 3]
    assert driver.group.state_name == "Stable"


def test_a_member_that_does_not_report_its_partitions_still_owns_them(driver: ConsumerDriver) -> None:
    first = driver.join("m")
    driver.join("n")
    assert numbers(driver.beat("m", first.member_epoch)) == [0, 1]
    for _ in range(3):
        assert driver.beat("m", first.member_epoch).member_epoch == first.member_epoch


def test_a_member_that_does_not_give_up_partitions_in_time_is_fenced(driver: ConsumerDriver) -> None:
    first = driver.join("m")
    second = driver.join("n")
    driver.beat("m", first.member_epoch, owns=owned(driver, 0, 1, 2, 3))
    driver.wait(9_999)
    assert "m" in driver.group.state.members
    driver.wait(1)
    assert list(driver.group.state.members) == ["n"]
    assert numbers(driver.beat("n", second.member_epoch, owns=[])) == [0, 1, 2, 3]
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        driver.beat("m", first.member_epoch)


def test_a_member_that_sends_no_heartbeat_is_removed(driver: ConsumerDriver) -> None:
    epoch = driver.join("m").member_epoch
    driver.wait(30_000)
    driver.beat("m", epoch)
    driver.wait(44_999)
    assert driver.group.state_name == "Stable"
    driver.wait(1)
    assert driver.group.state_name == "Empty"


def test_a_heartbeat_with_a_wrong_epoch_is_fenced(driver: ConsumerDriver) -> None:
    first = driver.join("m").member_epoch
    driver.topics.make("a", 5)
    second = driver.beat("m", first, owns=owned(driver, 0, 1, 2, 3))
    assert numbers(second) == [0, 1, 2, 3, 4]
    for epoch in (second.member_epoch + 1, first - 1):
        with refused(ErrorCode.FENCED_MEMBER_EPOCH):
            driver.beat("m", epoch, owns=[])
    with refused(ErrorCode.FENCED_MEMBER_EPOCH):
        driver.beat("m", first)  # This heartbeat does not list the owned partitions.
    lost = driver.beat("m", first, owns=owned(driver, 0, 1, 2, 3))
    assert lost.member_epoch == second.member_epoch, "the response was lost, so the member receives it again"


def test_a_member_that_joins_again_keeps_its_id_and_gets_its_whole_assignment(driver: ConsumerDriver) -> None:
    epoch = driver.join("m").member_epoch
    again = driver.join("m")
    assert (again.member_epoch, numbers(again)) == (epoch, [0, 1, 2, 3])


def test_a_member_that_leaves_frees_its_partitions(driver: ConsumerDriver) -> None:
    clients = [Client(driver, "m"), Client(driver, "n")]
    settled(driver, *clients)
    clients[0].leave()
    assert driver.group.state_name == "Assigning"
    settled(driver, clients[1])
    assert len(clients[1].owned) == 4
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        driver.beat("m", -1)


def test_new_partitions_topics_and_deletions_are_noticed_at_the_next_heartbeat(driver: ConsumerDriver) -> None:
    driver.topics = Topics(a=1)
    driver.group = driver.new()
    client = Client(driver, "m", ["a", "b"])
    settled(driver, client)
    epoch = driver.group.state.epoch
    for change, count in (
        (lambda: driver.topics.make("a", 3), 3),
        (lambda: driver.topics.make("b", 2), 5),
        (lambda: driver.topics.delete("a"), 2),
    ):
        change()
        client.beat()
        epoch += 1
        assert (driver.group.state.epoch, len(client.owned)) == (epoch, count)
    driver.topics.make("other", 7)
    settled(driver, client)
    assert driver.group.state.epoch == epoch, "nobody reads it"


def test_expressions_follow_the_topics(driver: ConsumerDriver) -> None:
    driver.topics.make("apple", 1)
    driver.topics.make("pear", 1)
    answer = driver.beat("m", topics=[], regex="ap.*", owns=[], rebalance=1)
    assert [t.topic_id for t in answer.assignment.topic_partitions] == [driver.topics.id("apple")]  # type: ignore[union-attr]
    driver.topics.make("apricot", 1)
    response = driver.beat("m", answer.member_epoch)
    assert response.assignment is not None and len(response.assignment.topic_partitions) == 2
    response = driver.beat("m", response.member_epoch, regex="", topics=["pear"], owns=[])
    assert [t.topic_id for t in response.assignment.topic_partitions] == [driver.topics.id("pear")]  # type: ignore[union-attr]
    assert driver.group.state.regexes == {}
    assert not any(b"ap.*" in key for key in driver.disk)


def test_a_broken_expression_is_refused_and_changes_nothing(driver: ConsumerDriver) -> None:
    with refused(ErrorCode.INVALID_REGULAR_EXPRESSION):
        driver.beat("m", topics=[], regex="((", owns=[], rebalance=1)
    assert (driver.group.state.members, driver.disk) == ({}, {})


def test_a_topic_that_is_not_read_any_more_is_given_up_at_once() -> None:
    driver = ConsumerDriver(Topics(a=2, b=2), consumer_group_settings(assignment_interval=1_000))
    first = driver.join("m", "a", "b")
    response = driver.beat("m", first.member_epoch, topics=["b"])
    assert driver.group.state_name == "Assigning", "it is too early for a new target"
    assert [t.topic_id for t in response.assignment.topic_partitions] == [driver.topics.id("b")]  # type: ignore[union-attr]
    assert driver.group.state.members["m"].state is MemberState.UNREVOKED_PARTITIONS


def test_target_assignments_are_computed_at_most_once_an_interval() -> None:
    driver = ConsumerDriver(settings=consumer_group_settings(assignment_interval=1_000))
    driver.join("m")
    second = driver.join("n")
    assert (driver.group.state_name, numbers(second)) == ("Assigning", [])
    driver.wait(1_000)
    driver.beat("n", second.member_epoch)
    assert driver.group.state_name == "Reconciling"


def test_the_majority_of_members_chooses_the_assignor(driver: ConsumerDriver) -> None:
    assert driver.group.assignor == "uniform"
    driver.join("m", assignor="range")
    driver.join("n")
    assert driver.group.assignor == "range"


def test_the_group_has_a_greatest_size() -> None:
    driver = ConsumerDriver(settings=consumer_group_settings(max_size=1))
    epoch = driver.join("m").member_epoch
    with refused(ErrorCode.GROUP_MAX_SIZE_REACHED):
        driver.join("n")
    driver.beat("m", epoch)


# -- static members


def test_a_static_member_that_returns_keeps_its_partitions(driver: ConsumerDriver) -> None:
    static, other = Client(driver, "m", instance="i"), Client(driver, "n")
    settled(driver, static, other)
    before, epoch = static.owned, driver.group.state.epoch
    static.leave(-2)
    for _ in range(3):
        other.beat()
    assert not other.owned & before, "they wait for it"
    back = Client(driver, "m2", instance="i")
    settled(driver, back, other)
    assert (back.owned, driver.group.state.epoch) == (before, epoch)
    assert set(driver.group.state.members) == {"m2", "n"}


def test_a_static_member_that_does_not_return_is_removed(driver: ConsumerDriver) -> None:
    static, other = Client(driver, "m", instance="i"), Client(driver, "n")
    settled(driver, static, other)
    static.leave(-2)
    driver.wait(30_000)
    other.beat()
    driver.wait(15_000)
    settled(driver, other)
    assert len(other.owned) == 4


def test_an_instance_id_has_one_member_at_a_time(driver: ConsumerDriver) -> None:
    epoch = driver.join("m", instance="i").member_epoch
    with refused(ErrorCode.UNRELEASED_INSTANCE_ID):
        driver.join("n", instance="i")
    with refused(ErrorCode.FENCED_INSTANCE_ID):
        driver.beat("n", epoch, instance="i")
    with refused(ErrorCode.FENCED_INSTANCE_ID):
        driver.beat("n", -1, instance="i")
    for epoch in (1, -1, -2):
        with refused(ErrorCode.UNKNOWN_MEMBER_ID):
            driver.beat("m", epoch, instance="j")


# -- offsets


def commit(driver: ConsumerDriver, member: str, epoch: int, *partitions: int, version: int = 9) -> Commit:
    topic_id = driver.topics.id("a")
    offsets = {TopicPartition("a", n): CommittedOffset(1, -1, "", 0, topic_id=topic_id) for n in partitions}
    return Commit(member, epoch, None, version, offsets)


def test_members_commit_with_an_epoch_since_they_own_the_partition(driver: ConsumerDriver) -> None:
    client = Client(driver, "m")
    settled(driver, client)
    first = client.epoch
    driver.topics.make("a", 5)
    settled(driver, client)
    group = driver.group
    group.check_commit(commit(driver, "m", client.epoch, 0, 4), 0)
    group.check_commit(commit(driver, "m", first, 0, 1, 2, 3), 0)
    for member, epoch, version, partitions, code in (
        ("m", first, 9, [4], ErrorCode.STALE_MEMBER_EPOCH),
        ("m", first - 1, 9, [0], ErrorCode.STALE_MEMBER_EPOCH),
        ("m", client.epoch + 1, 9, [0], ErrorCode.STALE_MEMBER_EPOCH),
        ("m", first, 9, [7], ErrorCode.STALE_MEMBER_EPOCH),
        ("m", client.epoch, 8, [0], ErrorCode.UNSUPPORTED_VERSION),
        ("n", client.epoch, 9, [0], ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, 9, [0], ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        with refused(code):
            group.check_commit(commit(driver, member, epoch, *partitions, version=version), 0)
    client.leave()
    group.check_commit(commit(driver, "", -1, 0), 0)


def test_a_commit_to_a_group_that_is_deleted_at_the_same_time_is_refused(driver: ConsumerDriver) -> None:
    driver.group.unload()
    with refused(ErrorCode.COORDINATOR_NOT_AVAILABLE):
        driver.group.check_commit(commit(driver, "", -1, 0), 0)


def test_members_fetch_offsets_with_their_epoch(driver: ConsumerDriver) -> None:
    epoch = driver.join("m").member_epoch
    driver.group.check_fetch(None, -1)
    driver.group.check_fetch("m", epoch)
    with refused(ErrorCode.STALE_MEMBER_EPOCH):
        driver.group.check_fetch("m", epoch - 1)
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        driver.group.check_fetch("n", epoch)


# -- writes that fail


def test_a_group_is_the_same_after_a_restart(driver: ConsumerDriver) -> None:
    clients = [Client(driver, "m", instance="i"), Client(driver, "n")]
    clients[0].beat()
    clients[1].beat()
    clients[0].is_slow = True
    clients[0].beat()
    driver.topics.make("apple", 1)
    driver.beat("o", regex="app.*", topics=[], owns=[], rebalance=5)
    restored = driver.restored()
    for name in ("epoch", "assignment_epoch", "metadata_hash", "members", "targets", "instances", "regexes", "_owners"):
        assert getattr(restored.state, name) == getattr(driver.group.state, name), name
    assert restored.state_name == driver.group.state_name == "Reconciling"
    assert restored.next_deadline() == driver.now + 10_000, "the member that is to give up has its time again"


def test_a_change_that_was_not_written_has_no_effect(driver: ConsumerDriver) -> None:
    epoch = driver.join("m").member_epoch
    driver.holds = True
    driver.join("n")
    response = driver.beat("m", epoch, owns=owned(driver, 0, 1, 2, 3))
    assert numbers(response) == [0, 1]
    driver.lose()
    assert set(driver.group.state.members) == {"m"}
    assert driver.group.state.members == driver.restored().state.members
    driver.holds = False
    assert numbers(driver.beat("m", epoch, owns=owned(driver, 0, 1, 2, 3))) is None


def test_after_a_lost_write_memory_matches_the_records_on_disk(driver: ConsumerDriver) -> None:
    driver.join("m")
    driver.holds = True
    driver.join("n")
    lost, driver.held = driver.held, []
    driver.join("o")
    kept, driver.held = driver.held, lost
    driver.lose()
    driver.held = kept
    driver.write()
    assert driver.group.state.members == driver.restored().state.members
    assert driver.group.state.epoch == driver.restored().state.epoch


def test_an_empty_group_can_be_deleted_and_leaves_nothing(driver: ConsumerDriver) -> None:
    driver.beat("m", topics=["a"], regex="b.*", owns=[], rebalance=1)
    with refused(ErrorCode.NON_EMPTY_GROUP):
        driver.group.tombstones()
    driver.beat("m", -1)
    for key, value in driver.group.tombstones():
        assert value is None
        driver.disk.pop(key, None)
    assert driver.disk == {}
    driver.group.unload()
    with refused(ErrorCode.NOT_COORDINATOR):
        driver.join("m")


def test_list_groups_reads_the_state_while_another_thread_adds_a_member(
    driver: ConsumerDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.join("m")
    members = driver.group.state.members

    def add_a_member(member: ConsumerMember, epoch: int) -> bool:
        members["n"] = ConsumerMember("n")
        return True

    monkeypatch.setattr(ConsumerMember, "is_reconciled_to", add_a_member)
    assert driver.group.state_name == "Stable"
