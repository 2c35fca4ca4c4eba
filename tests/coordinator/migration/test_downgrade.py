"""Tests of the downgrade: a KIP-848 group becomes a classic group when its last KIP-848 member leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hmb.coordinator.classic.members import MemberIdentity
from hmb.coordinator.consumer.settings import MigrationPolicy
from hmb.coordinator.migration.partitions import encode_assignment
from hmb.protocol.enums import GroupState
from hmb.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.migration.migration_driver import AGAIN, ClassicClient, MigrationDriver, settled
from tests.coordinator.settings import group_settings


def test_when_the_last_member_of_the_new_protocol_leaves_the_group_becomes_classic_and_rebalances() -> None:
    driver, ada, bob = settled()
    driver.beat("eve", -1)
    assert (driver.classic.state.current, driver.classic.state.generation) == (GroupState.PREPARING_REBALANCE, 3)
    driver.restart()
    assert driver.classic.state.generation == 3
    assert sorted(driver.classic.state.members.by_id) == sorted([ada.member_id, bob.member_id])


def test_the_members_of_a_downgraded_group_form_the_next_generation() -> None:
    driver, ada, bob = settled()
    driver.beat("eve", -1)
    assert driver.heartbeat(ada) is driver.heartbeat(bob) is AGAIN
    assert driver.join(ada) is None
    assert driver.join(bob) is ErrorCode.NONE
    assert driver.joined(ada) is ErrorCode.NONE
    assert (ada.generation, bob.generation) == (4, 4)
    assert driver.classic.state.members.leader_id == ada.member_id


def test_a_downgrade_keeps_the_target_as_assignment() -> None:
    driver, ada, bob = settled()
    targets = driver.consumer.state.targets
    driver.beat("eve", -1)
    for client in (ada, bob):
        member = driver.classic.state.members.by_id[client.member_id]
        assert member.assignment == encode_assignment(targets[client.member_id], 3, driver.topics)
        assert (member.session_timeout, member.rebalance_timeout) == (10_000, 60_000)


def test_the_end_of_a_session_downgrades_the_group() -> None:
    driver, ada, bob = settled()
    for _ in range(10):
        driver.wait(5_000)
        driver.heartbeat(ada)
        driver.heartbeat(bob)
    assert driver.classic.state.current is GroupState.PREPARING_REBALANCE


@pytest.mark.parametrize("policy", [MigrationPolicy.DISABLED, MigrationPolicy.UPGRADE])
def test_a_policy_can_forbid_a_downgrade(policy: MigrationPolicy) -> None:
    driver, ada, bob = settled()
    driver.policy = replace(driver.policy, migration_policy=policy)
    driver.beat("eve", -1)
    assert driver.heartbeat(ada) is AGAIN
    owned: list[int] = []
    for client in (ada, bob):
        assert driver.join(client) is ErrorCode.NONE
        part = driver.sync(client)
        assert isinstance(part, list)
        owned += part
    assert sorted(owned) == [0, 1, 2, 3], "the members of the classic protocol go on in the KIP-848 group"


def test_a_group_without_members_and_one_that_is_too_large_are_not_downgraded() -> None:
    driver = MigrationDriver(settings=group_settings(initial_delay=0, max_size=2))
    driver.beat("eve")
    clients = [ClassicClient(name) for name in ("ada", "bob", "tom")]
    for client in clients:
        assert driver.join(client) is ErrorCode.NONE
    driver.beat("eve", -1)
    assert len(driver.consumer.state.members) == 3
    driver.leave(*(MemberIdentity(member_id=client.member_id) for client in clients))
    assert driver.consumer.is_empty


def test_the_last_static_member_restarts_with_the_classic_protocol_and_the_group_does_not_rebalance() -> None:
    driver = MigrationDriver()
    driver.beat("eve", instance="i")
    bob, eve = ClassicClient("bob"), ClassicClient("eve", instance="i")
    assert driver.join(bob) is ErrorCode.NONE
    driver.sync(bob)
    driver.beat("eve", 2, owns=[0, 1, 2, 3], instance="i")
    answer = driver.beat("eve", 2, owns=[0, 1], instance="i")
    driver.beat("eve", answer.member_epoch, owns=[0, 1], instance="i")
    assert driver.heartbeat(bob) is AGAIN
    driver.join(bob)
    driver.sync(bob)
    assert driver.join(eve) is ErrorCode.NONE
    assert driver.classic.state.current is GroupState.STABLE
    assert driver.sync(eve) == [0, 1]
    assert driver.heartbeat(bob) is driver.heartbeat(eve) is ErrorCode.NONE


def test_after_a_failed_write_of_a_downgrade_the_next_write_deletes_the_records_of_the_old_group() -> None:
    driver, ada, bob = settled()
    driver.fails = True
    with pytest.raises(KafkaError):
        driver.beat("eve", -1)
    driver.fails = False
    driver.join(ada)
    driver.join(bob)
    driver.joined(ada)
    driver.sync(ada)
    driver.restart()
    assert driver.classic.state.generation == 4


def test_after_a_failed_write_of_a_downgrade_an_upgrade_deletes_all_records_of_the_old_group() -> None:
    driver, _, _ = settled()
    driver.fails = True
    with pytest.raises(KafkaError):
        driver.beat("eve", -1)
    driver.fails = False
    driver.beat("zoe")
    driver.restart()
    assert "eve" not in driver.consumer.state.members


def test_a_downgrade_deletes_the_records_of_a_member_whose_removal_could_not_be_written() -> None:
    """A downgrade deletes the records of the member zoe, although the write of zoe's removal fails.

    1. The member zoe leaves the group, and the broker starts to write the removal of zoe.
    2. During this write, the last KIP-848 member eve leaves. The broker writes the downgrade to a classic group.
    3. The write of zoe's removal fails.

    Before a bug was fixed, the downgrade deleted only the records of members, and zoe was no longer a member.
    """
    driver, ada, bob = settled()
    driver.beat("zoe")
    driver.meanwhile = lambda: driver.beat("eve", -1)
    with pytest.raises(KafkaError):
        driver.beat("zoe", -1)
    driver.restart()
    assert sorted(driver.classic.state.members.by_id) == sorted([ada.member_id, bob.member_id])


def test_after_two_failed_writes_the_next_group_deletes_the_records_of_the_first_one() -> None:
    """After two failed writes, a new classic group deletes the records of an old KIP-848 group.

    1. The last KIP-848 member leaves, but the write of the downgrade fails. So the old records stay on disk.
    2. A KIP-848 member joins, but the write of the upgrade fails.
    3. The client tom joins with the classic protocol. The new classic group must delete the old records.

    Before a bug was fixed, the new classic group did not delete the old records.
    """
    driver, _, _ = settled()
    driver.fails = True
    with pytest.raises(KafkaError):
        driver.beat("eve", -1)
    with pytest.raises(KafkaError):
        driver.beat("zoe")
    driver.fails = False
    assert driver.consumer.is_empty
    new = ClassicClient("tom")
    assert driver.join(new) is ErrorCode.NONE
    assert driver.sync(new, **{new.member_id.replace("-", "_"): [0, 1, 2, 3]}) == [0, 1, 2, 3]
    driver.restart()
    assert list(driver.classic.state.members.by_id) == [new.member_id]


def test_a_classic_group_deletes_the_records_of_an_empty_group_after_a_failed_write() -> None:
    driver = MigrationDriver()
    driver.beat("eve")
    driver.beat("eve", -1)
    tom = ClassicClient("tom")
    driver.fails = True
    assert driver.join(tom) is ErrorCode.NONE
    driver.fails = False
    assert driver.sync(tom, **{tom.member_id.replace("-", "_"): [0, 1, 2, 3]}) == [0, 1, 2, 3]
    driver.restart()
    assert list(driver.classic.state.members.by_id) == [tom.member_id]
