"""Tests of one rebalance of a classic group, step by step: all members join, the leader assigns, all members sync."""

from __future__ import annotations

from hmb.protocol.enums import GroupState
from hmb.protocol.errors import ErrorCode
from tests.coordinator.classic.group_driver import GroupDriver
from tests.coordinator.settings import group_settings


def joined_by_two() -> tuple[GroupDriver, str, str]:
    """Let members A and B join a new group. Return their ids; A is the leader of generation 1."""
    driver = GroupDriver(group_settings(initial_delay=3_000))
    first, second = driver.join("a", version=3), driver.join("b", version=3)
    driver.wait(6_000)  # The group waits 3 s for members. B joins in this time, so the group waits 3 s more.
    answers = driver.joined(first), driver.joined(second)
    assert [answer.generation_id for answer in answers] == [1, 1]
    assert answers[1].leader == answers[0].leader == answers[0].member_id
    return driver, answers[0].member_id, answers[1].member_id


def test_two_members_join_and_get_the_assignment_of_the_leader() -> None:
    driver, leader, other = joined_by_two()
    assert driver.group.state.current is GroupState.COMPLETING_REBALANCE
    waiting = driver.sync(other, 1)
    assert waiting not in driver.answers  # The leader has not sent the assignment yet.
    answer = driver.synced(driver.sync(leader, 1, {leader: b"partition 0", other: b"partition 1"}))
    assert answer.assignment == b"partition 0"
    assert driver.synced(waiting).assignment == b"partition 1"
    assert driver.group.state.current is GroupState.STABLE


def test_only_the_leader_gets_the_list_of_members() -> None:
    driver = GroupDriver(group_settings(initial_delay=0))
    first = driver.joined(driver.join("a", version=3))
    second = driver.join("b", version=3)
    again = driver.joined(driver.join("a", first.member_id, version=3))
    assert again.generation_id == driver.joined(second).generation_id == 2
    assert len(again.members) == 2 and not driver.joined(second).members


def test_a_new_member_begins_the_next_generation() -> None:
    driver, leader, other = joined_by_two()
    driver.sync(leader, 1, {})
    driver.join("c", version=3)
    assert driver.group.state.current is GroupState.PREPARING_REBALANCE
    assert driver.heartbeat(other, 1) is ErrorCode.REBALANCE_IN_PROGRESS  # The member `other` must join again.


def test_a_member_that_does_not_join_again_in_time_is_removed() -> None:
    driver, leader, other = joined_by_two()
    driver.sync(leader, 1, {})
    driver.join("a", leader, rebalance=5_000, version=3)
    driver.wait(60_000)
    assert other not in driver.group.state.members
