"""Tests of a streams group and of its heartbeats (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from hmb.coordinator.group import Commit
from hmb.coordinator.offsets import CommittedOffset
from hmb.coordinator.streams.description import describe_streams_group
from hmb.coordinator.streams.heartbeat import check_heartbeat
from hmb.coordinator.streams.states import STREAMS_MEMBER_STATES, StreamsMemberEvent, StreamsMemberState
from hmb.protocol.enums import StreamsStatus
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.streams_group_heartbeat import (
    Endpoint,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from hmb.protocol.topics import TopicPartition
from tests.coordinator.consumer.consumer_driver import Topics
from tests.coordinator.streams.driver import (
    CHANGELOG,
    DISK_FULL,
    REPARTITION,
    SETTINGS,
    StreamsDriver,
    Subtopology,
    Topology,
    names,
    tasks,
    word_count,
)

ALL = ["0_0", "0_1", "1_0", "1_1"]


@pytest.fixture
def driver() -> StreamsDriver:
    return StreamsDriver()


@contextmanager
def refused(code: ErrorCode, message: str | None = None) -> Iterator[None]:
    with pytest.raises(KafkaError, match=message) as error:
        yield
    assert error.value.code is code


def statuses(response: StreamsGroupHeartbeatResponse) -> list[int]:
    return [status.status_code for status in response.status or ()]


def test_the_first_member_gets_all_tasks(driver: StreamsDriver) -> None:
    assert driver.group.state_name == "Empty"
    answer = driver.join("a")
    assert (answer.member_id, answer.heartbeat_interval_ms, names(answer.active_tasks)) == ("a", 5_000, ALL)
    assert (answer.standby_tasks, answer.warmup_tasks, answer.status) == ([], [], [])
    assert answer.member_epoch == driver.group.state.epoch == driver.group.state.assignment_epoch == 2
    assert driver.group.state_name == "Stable"
    assert driver.beat("a", 2).active_tasks is None, "nothing is new"


def test_a_task_gets_a_new_owner_after_the_old_one_gave_it_up(driver: StreamsDriver) -> None:
    driver.join("a")
    joined = driver.join("b")
    assert (joined.member_epoch, names(joined.active_tasks)) == (3, [])
    assert driver.group.state_name == "Reconciling"
    revoking = driver.beat("a", 2, active=ALL)
    assert (revoking.member_epoch, names(revoking.active_tasks)) == (2, ["0_0", "1_0"])
    assert names(driver.beat("b", 3).active_tasks) is None, "a still owns the tasks"
    assert driver.beat("a", 2, active=["0_0", "1_0"]).member_epoch == 3
    assert names(driver.beat("b", 3).active_tasks) == ["0_1", "1_1"]
    assert driver.group.state_name == "Stable"


def test_a_member_that_does_not_give_up_its_tasks_is_removed(driver: StreamsDriver) -> None:
    driver.join("a")
    driver.join("b")
    driver.beat("a", 2)
    driver.wait(10_000)
    assert list(driver.group.state.members) == ["b"]
    driver.beat("b", 3)
    assert names(driver.beat("b", 4).active_tasks) is None
    assert driver.group.state.members["b"].assigned.active.keys() == {*driver.group.state.targets["b"].active}
    assert len(driver.group.state.targets["b"].active) == 4


def test_a_silent_member_is_removed_and_its_tasks_move(driver: StreamsDriver) -> None:
    driver.join("a")
    driver.wait(44_999)
    assert not driver.group.is_empty
    driver.wait(1)
    assert driver.group.is_empty
    with refused(ErrorCode.UNKNOWN_MEMBER_ID, "Member a is not a member of group g"):
        driver.beat("a", 2)
    assert names(driver.join("b").active_tasks) == ALL


def test_missing_internal_topics_are_named_and_assigned_after_their_creation(driver: StreamsDriver) -> None:
    driver.topics = Topics(lines=3)
    driver.group = driver.new()
    answer = driver.join("a")
    assert statuses(answer) == [StreamsStatus.MISSING_INTERNAL_TOPICS]
    assert answer.status is not None
    assert answer.status[0].status_detail == f"Internal topics are missing: {CHANGELOG}, {REPARTITION}"
    assert [(topic.name, topic.partitions) for topic in driver.missing] == [(CHANGELOG, 3), (REPARTITION, 3)]
    assert (names(answer.active_tasks), driver.group.state_name) == ([], "NotReady")
    for topic in driver.missing:
        driver.topics.make(topic.name, topic.partitions)
    answer = driver.beat("a", answer.member_epoch)
    assert (len(names(answer.active_tasks) or ()), answer.status, driver.missing) == (6, [], ())
    assert driver.group.state_name == "Stable"


def test_missing_source_topics_leave_the_members_without_tasks(driver: StreamsDriver) -> None:
    driver.join("a")
    driver.topics.delete("lines")
    answer = driver.beat("a", 2)
    assert statuses(answer) == [StreamsStatus.MISSING_SOURCE_TOPICS]
    assert answer.status is not None
    assert answer.status[0].status_detail == "Source topics lines are missing."
    assert (names(answer.active_tasks), driver.group.state_name) == ([], "NotReady")
    driver.topics.make("lines", 2)
    epoch = driver.beat("a", 2, active=[]).member_epoch
    assert names(driver.beat("a", epoch).active_tasks) == ALL
    assert driver.group.state_name == "Stable"


def test_the_first_assignment_waits_for_more_members(driver: StreamsDriver) -> None:
    driver.settings = replace(SETTINGS, initial_delay=3_000)
    first, second = driver.join("a"), driver.join("b")
    for answer in (first, second):
        assert (answer.member_epoch, names(answer.active_tasks)) == (1, [])
        assert statuses(answer) == [StreamsStatus.ASSIGNMENT_DELAYED]
    assert driver.group.state_name == "Assigning"
    driver.wait(3_000)
    first, second = driver.beat("a", 1), driver.beat("b", 1)
    assert (names(first.active_tasks), names(second.active_tasks)) == (["0_0", "1_0"], ["0_1", "1_1"])


def test_two_assignments_have_a_distance(driver: StreamsDriver) -> None:
    driver.settings = replace(SETTINGS, assignment_interval=1_000)
    driver.join("a")
    assert statuses(driver.join("b")) == [StreamsStatus.ASSIGNMENT_DELAYED]
    driver.wait(1_000)
    assert driver.beat("b", 2).status == []
    assert driver.group.state.assignment_epoch == 3


def test_a_standby_task_is_in_another_process(driver: StreamsDriver) -> None:
    driver.settings = replace(SETTINGS, standby_replicas=1)
    driver.join("a", process="p")
    driver.join("b", process="p")
    driver.join("c", process="q")
    targets = driver.group.state.targets
    for member, others in (("a", "c"), ("b", "c")):
        stateful = {task for task in targets[member].active if task.subtopology == "1"}
        assert stateful <= targets[others].standby
    assert {task.subtopology for each in targets.values() for task in each.standby} == {"1"}
    # If the number of standby replicas changes, the group computes a new target assignment.
    driver.settings = SETTINGS
    driver.beat("c", driver.group.state.members["c"].epoch)
    assert not any(target.standby for target in driver.group.state.targets.values())


def test_epochs_of_heartbeats(driver: StreamsDriver) -> None:
    driver.join("a")
    with refused(ErrorCode.FENCED_MEMBER_EPOCH, "greater"):
        driver.beat("a", 3)
    with refused(ErrorCode.FENCED_MEMBER_EPOCH, "smaller"):
        driver.beat("a", 1, active=[])
    driver.join("b")
    driver.beat("a", 2, active=ALL)
    driver.beat("a", 2, active=["0_0", "1_0"])
    assert driver.beat("a", 2, active=["0_0"]).member_epoch == 3, "the response with epoch 3 was lost"
    with refused(ErrorCode.FENCED_MEMBER_EPOCH):
        driver.beat("a", 2, active=["0_1"])
    again = driver.join("a")
    assert (again.member_epoch, names(again.active_tasks)) == (3, ["0_0", "1_0"])


def test_a_group_has_a_limit_and_one_topology(driver: StreamsDriver) -> None:
    driver.settings = replace(SETTINGS, max_size=2)
    driver.join("a", word_count(1))
    other = word_count(1)
    other.subtopologies[0].source_topics = [REPARTITION]
    with refused(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet."):
        driver.join("b", other)
    with refused(ErrorCode.INVALID_REQUEST):
        driver.join("b", word_count(2))
    reordered = word_count(1)
    reordered.subtopologies.reverse()
    assert driver.join("b", reordered).status == []
    with refused(ErrorCode.GROUP_MAX_SIZE_REACHED, "maximum capacity of 2 members"):
        driver.join("c")


def test_a_member_with_an_old_topology_gets_a_status(driver: StreamsDriver) -> None:
    driver.join("a", word_count(1))
    answer = driver.join("b", word_count(0))
    assert statuses(answer) == [StreamsStatus.STALE_TOPOLOGY]


def test_tasks_that_do_not_exist_are_refused(driver: StreamsDriver) -> None:
    driver.join("a")
    with refused(ErrorCode.INVALID_REQUEST, "Subtopology 7 does not exist"):
        driver.beat("a", 2, active=["7_0"])
    with refused(ErrorCode.INVALID_REQUEST, "Task 2 for subtopology 0 is invalid"):
        driver.beat("a", 2, active=["0_2"])


def test_all_members_hear_of_a_shutdown(driver: StreamsDriver) -> None:
    driver.join("a")
    driver.join("b")
    driver.beat("a", -1, shutdown=True)
    assert statuses(driver.beat("b", 3)) == [StreamsStatus.SHUTDOWN_APPLICATION]
    driver.beat("b", -1)
    assert driver.join("c").status == []


def test_the_addresses_of_members_have_an_epoch(driver: StreamsDriver) -> None:
    answer = driver.join("a", endpoint=Endpoint(host="a", port=1))
    assert answer.endpoint_information_epoch == 0, "the epoch begins with the second heartbeat"
    answer = driver.join("a")
    assert answer.endpoint_information_epoch == 1
    (found,) = answer.partitions_by_user_endpoint or ()
    assert (found.user_endpoint.host, found.user_endpoint.port, found.standby_partitions) == ("a", 1, [])
    assert [(it.topic, it.partitions) for it in found.active_partitions] == [("lines", [0, 1]), (REPARTITION, [0, 1])]


def test_a_group_is_restored_from_its_records(driver: StreamsDriver) -> None:
    driver.settings = replace(SETTINGS, standby_replicas=1)
    driver.join("a", endpoint=Endpoint(host="a", port=1))
    driver.join("b")
    driver.beat("a", 2, active=ALL)
    restored = driver.restored()
    for name in ("members", "targets", "topology", "epoch", "assignment_epoch", "validated_epoch", "configs"):
        assert getattr(restored.state, name) == getattr(driver.group.state, name), name
    assert restored.state_name == driver.group.state_name == "Reconciling"
    driver.group = restored
    assert driver.beat("a", 2, active=["0_0", "1_0"]).member_epoch == 3


def test_a_failed_write_restores_the_group(driver: StreamsDriver) -> None:
    driver.join("a")
    driver.fails = True
    with pytest.raises(KafkaError) as error:
        driver.join("b")
    assert error.value is DISK_FULL
    driver.fails = False
    assert list(driver.group.state.members) == ["a"]
    assert driver.beat("a", 2).member_epoch == 2


def test_a_group_without_members_can_be_deleted(driver: StreamsDriver) -> None:
    driver.join("a")
    with refused(ErrorCode.NON_EMPTY_GROUP):
        driver.group.tombstones()
    driver.beat("a", -1)
    for key, value in driver.group.tombstones():
        assert value is None
        del driver.disk[key]
    assert driver.disk == {}


def commit(epoch: int, topic: str = "lines", partition: int = 0, version: int = 9, member: str = "a") -> Commit:
    offset = CommittedOffset(5, -1, "", 0)
    return Commit(member, epoch, None, version, {TopicPartition(topic, partition): offset})


def test_commits_need_the_epoch_of_the_member_or_of_the_task(driver: StreamsDriver) -> None:
    driver.group.check_commit(commit(-1, member=""), 0)
    driver.join("a")
    driver.join("b")
    driver.beat("a", 2, active=ALL)
    driver.beat("a", 2, active=["0_0", "1_0"])
    driver.beat("b", 3)
    driver.group.check_commit(commit(3), 0)
    driver.group.check_commit(commit(2), 0)
    driver.group.check_commit(commit(2, REPARTITION), 0)
    for wrong in (commit(4), commit(1), commit(2, partition=1), commit(2, "other"), commit(2, member="b")):
        with refused(ErrorCode.STALE_MEMBER_EPOCH):
            driver.group.check_commit(wrong, 0)
    with refused(ErrorCode.UNSUPPORTED_VERSION):
        driver.group.check_commit(commit(3, version=8), 0)
    with refused(ErrorCode.UNKNOWN_MEMBER_ID):
        driver.group.check_commit(commit(-1, member=""), 0)
    driver.group.check_fetch("a", 3)
    with refused(ErrorCode.STALE_MEMBER_EPOCH):
        driver.group.check_fetch("a", 2)
    assert (driver.group.reads("lines"), driver.group.reads(CHANGELOG)) == (True, False)


def test_a_description_contains_the_topology_and_the_tasks(driver: StreamsDriver) -> None:
    driver.join("a", endpoint=Endpoint(host="a", port=1))
    found = describe_streams_group(driver.group)
    assert (found.group_state, found.group_epoch, found.assignment_epoch) == ("Stable", 2, 2)
    assert found.topology is not None
    assert found.topology.subtopologies is not None
    split, count = found.topology.subtopologies
    assert (split.source_topics, split.repartition_sink_topics) == (["lines"], [REPARTITION])
    internal = [*count.repartition_source_topics, *count.state_changelog_topics]
    assert [(topic.name, topic.partitions) for topic in internal] == [(REPARTITION, 2), (CHANGELOG, 2)]
    (member,) = found.members
    assert (member.member_id, member.process_id, member.user_endpoint) == (
        "a",
        "process of a",
        Endpoint(host="a", port=1),
    )
    assert names(member.assignment.active_tasks) == names(member.target_assignment.active_tasks) == ALL


def test_every_event_can_happen_to_a_member_in_every_state() -> None:
    pairs = product(StreamsMemberState, StreamsMemberEvent)
    assert all(STREAMS_MEMBER_STATES.allows(state, event) for state, event in pairs)


JOIN: dict[str, Any] = {
    "group_id": "g",
    "member_id": "a",
    "rebalance_timeout_ms": 1,
    "topology": word_count(),
    "active_tasks": [],
    "standby_tasks": [],
    "warmup_tasks": [],
}


def topology(**fields: Any) -> Topology:
    return Topology(subtopologies=[Subtopology(**{"subtopology_id": "0", "source_topics": ["lines"], **fields})])


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"member_id": " "}, ErrorCode.INVALID_REQUEST),
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": "i"}, ErrorCode.INVALID_REQUEST),
        ({"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"topology": None}, ErrorCode.INVALID_REQUEST),
        ({"active_tasks": None}, ErrorCode.INVALID_REQUEST),
        ({"standby_tasks": tasks("0_0")}, ErrorCode.INVALID_REQUEST),
        ({"warmup_tasks": tasks("0_0")}, ErrorCode.INVALID_REQUEST),
        ({"task_offsets": []}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": 1}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -3, "topology": None}, ErrorCode.INVALID_REQUEST),
        ({"topology": topology(source_topic_regex=["a.*"])}, ErrorCode.INVALID_REQUEST),
        ({"topology": topology(source_topics=["__consumer_offsets"])}, ErrorCode.STREAMS_INVALID_TOPOLOGY),
        ({"topology": topology(source_topics=["a b"])}, ErrorCode.STREAMS_INVALID_TOPOLOGY),
        ({"topology": Topology(epoch=-1)}, ErrorCode.STREAMS_INVALID_TOPOLOGY),
        ({"topology": Topology(subtopologies=[*word_count().subtopologies] * 2)}, ErrorCode.STREAMS_INVALID_TOPOLOGY),
        (
            {"topology": topology(copartition_groups=[Subtopology.CopartitionGroup(source_topics=[1])])},
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
        ),
    ],
)
def test_wrong_heartbeats(changes: dict[str, Any], code: ErrorCode) -> None:
    check_heartbeat(StreamsGroupHeartbeatRequest(**JOIN))
    with refused(code):
        check_heartbeat(StreamsGroupHeartbeatRequest(**JOIN | changes))
