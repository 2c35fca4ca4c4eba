"""Tests of the online migration from the classic protocol to KIP-848, step by step with a manual clock.

An upgrade converts a classic group to a KIP-848 group. In a mixed group, some members use the classic protocol, and
other members use the KIP-848 protocol.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hmb.coordinator.classic.members import MemberIdentity
from hmb.coordinator.consumer.description import describe_consumer_group
from hmb.coordinator.consumer.settings import MigrationPolicy
from hmb.coordinator.group import Commit
from hmb.coordinator.offsets import CommittedOffset
from hmb.protocol.enums import GroupState
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition
from tests.coordinator.migration.migration_driver import (
    AGAIN,
    ClassicClient,
    MigrationDriver,
    assigned,
    migrating,
    settled,
    with_policy,
)

COOPERATIVE = ("cooperative-sticky",)


def refusal(driver: MigrationDriver, member_id: str = "eve") -> tuple[ErrorCode, str]:
    with pytest.raises(KafkaError) as refused:
        driver.beat(member_id)
    return refused.value.code, refused.value.message


# -- upgrade


def test_an_upgrade_keeps_members_generation_and_assignment() -> None:
    driver, ada, bob = migrating()
    members = driver.consumer.state.members
    assert list(members) == [ada.member_id, bob.member_id, "eve"]
    assert [members[client.member_id].epoch for client in (ada, bob)] == [2, 2]
    assert [sorted(number for _, number in members[client.member_id].assigned) for client in (ada, bob)] == [
        [0, 1],
        [2, 3],
    ]
    member = members[ada.member_id]
    assert (member.client_id, member.client_host, member.rebalance_timeout) == ("ada", "/ada.example", 60_000)
    assert member.classic is not None and member.classic.session_timeout == 10_000
    assert (driver.consumer.state.epoch, driver.consumer.state.assignment_epoch, members["eve"].epoch) == (3, 3, 3)


def test_the_members_move_to_the_target_one_after_the_other() -> None:
    driver, ada, bob = migrating()
    assert driver.heartbeat(ada) is driver.heartbeat(bob) is AGAIN
    owned = []
    for client in (ada, bob):
        assert driver.join(client) is ErrorCode.NONE
        assert client.generation == 3
        part = driver.sync(client)
        assert isinstance(part, list)
        owned += part
        assert driver.heartbeat(client) is ErrorCode.NONE
    owned += assigned(driver.beat("eve", 3, owns=()))
    assert sorted(owned) == [0, 1, 2, 3], "each partition has one owner"


def test_a_cooperative_member_gives_up_a_partition_before_another_member_gets_it() -> None:
    driver, ada, bob = migrating(COOPERATIVE)
    kept = {}
    for client, owns in ((ada, [0, 1]), (bob, [2, 3])):
        assert driver.heartbeat(client) is AGAIN
        assert driver.join(client, owns=owns) is ErrorCode.NONE
        part = driver.sync(client)
        assert isinstance(part, list)
        kept[client.name] = part
    mover, stayer = (ada, bob) if len(kept["ada"]) == 1 else (bob, ada)
    assert (mover.generation, stayer.generation) == (2, 3), "the member must first give up a partition"
    assert driver.beat("eve", 3, owns=()).assignment is None
    assert driver.heartbeat(mover) is AGAIN
    assert driver.heartbeat(stayer) is ErrorCode.NONE
    assert driver.join(mover, owns=kept[mover.name]) is ErrorCode.NONE
    assert (mover.generation, driver.sync(mover)) == (3, kept[mover.name])
    assert len(assigned(driver.beat("eve", 3, owns=()))) == 1
    assert driver.heartbeat(mover) is ErrorCode.NONE


def test_a_member_that_waits_for_partitions_joins_again_when_they_are_free() -> None:
    driver = MigrationDriver()
    driver.beat("eve")
    ada = ClassicClient("ada")
    assert driver.join(ada) is ErrorCode.NONE
    assert (ada.generation, driver.sync(ada)) == (3, [])
    assert driver.heartbeat(ada) is ErrorCode.NONE, "eve still has all partitions"
    assert assigned(driver.beat("eve", 2, owns=[0, 1, 2, 3])) == [0, 1]
    assert driver.heartbeat(ada) is ErrorCode.NONE, "eve has not given up the partitions yet"
    driver.beat("eve", 2, owns=[0, 1])
    assert driver.heartbeat(ada) is AGAIN
    assert driver.join(ada) is ErrorCode.NONE
    assert driver.sync(ada) == [2, 3]


def test_requests_that_wait_for_a_rebalance_are_told_to_join_again() -> None:
    driver = MigrationDriver()
    ada, bob = ClassicClient("ada"), ClassicClient("bob")
    driver.stable(ada, bob)
    assert driver.join(ada) is None
    driver.beat("eve")
    assert driver.joined(ada) is AGAIN
    assert driver.join(ada) is ErrorCode.NONE


@pytest.mark.parametrize("policy", [MigrationPolicy.DISABLED, MigrationPolicy.DOWNGRADE])
def test_a_policy_can_forbid_an_upgrade(policy: MigrationPolicy) -> None:
    driver = with_policy(policy)
    ada, bob = ClassicClient("ada"), ClassicClient("bob")
    driver.stable(ada, bob)
    assert refusal(driver) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        "Cannot upgrade classic group g to consumer group because online upgrade is disabled.",
    )
    assert driver.heartbeat(ada) is ErrorCode.NONE, "the classic group stays"


def test_a_group_that_is_too_large_is_not_upgraded() -> None:
    driver = with_policy(MigrationPolicy.BIDIRECTIONAL, max_size=1)
    ada, bob = ClassicClient("ada"), ClassicClient("bob")
    driver.stable(ada, bob)
    code, message = refusal(driver)
    assert code is ErrorCode.GROUP_ID_NOT_FOUND
    assert message.endswith("because the group size exceeds the consumer group maximum size.")
    driver.policy = replace(driver.policy, max_size=2)
    assert refusal(driver)[0] is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert driver.classic.state.current is GroupState.STABLE
    assert driver.heartbeat(ada) is ErrorCode.NONE, "a heartbeat that fails does not convert the group"


@pytest.mark.parametrize(
    ("assignment", "problem"),
    [
        (b"\0\3\0\0\0\0\0\0\0\1x", "an unsupported custom assignor is in use."),
        (b"\0\3\0\0\0\7", "the embedded consumer protocol is malformed."),
    ],
)
def test_an_assignment_that_the_coordinator_cannot_keep_forbids_an_upgrade(assignment: bytes, problem: str) -> None:
    driver = MigrationDriver()
    ada, bob = ClassicClient("ada"), ClassicClient("bob")
    driver.stable(ada, bob)
    driver.classic.state.members.by_id[ada.member_id].assignment = assignment
    code, message = refusal(driver)
    assert code is ErrorCode.GROUP_ID_NOT_FOUND
    assert message.startswith(f"Cannot upgrade classic group g to consumer group because {problem}")


def test_malformed_metadata_of_a_preferred_protocol_forbids_an_upgrade() -> None:
    """If the metadata of a member's preferred protocol is malformed, the coordinator refuses an upgrade.

    The group uses the protocol "range", and its metadata is valid. One member prefers the protocol "own" with malformed
    metadata. After an upgrade, the coordinator needs this metadata for SyncGroup requests and for a downgrade.
    """
    driver = MigrationDriver()
    ada, bob = ClassicClient("ada"), ClassicClient("bob")
    driver.stable(ada, bob)
    member = driver.classic.state.members.by_id[ada.member_id]
    member.protocols = [("own", b"junk"), *member.protocols]
    code, message = refusal(driver)
    assert code is ErrorCode.GROUP_ID_NOT_FOUND
    assert message.startswith("Cannot upgrade classic group g to consumer group because the embedded consumer protocol")
    assert driver.heartbeat(ada) is ErrorCode.NONE


def test_after_a_failed_write_the_members_join_again_and_nothing_of_the_classic_group_stays_on_disk() -> None:
    driver = MigrationDriver()
    ada, bob = ClassicClient("ada"), ClassicClient("bob")
    driver.stable(ada, bob)
    driver.fails = True
    assert refusal(driver)[0] is ErrorCode.NOT_COORDINATOR
    driver.fails = False
    driver.beat("eve")
    driver.restart()
    assert list(driver.consumer.state.members) == ["eve"]
    assert driver.heartbeat(ada) is ErrorCode.UNKNOWN_MEMBER_ID
    ada.member_id = ""
    assert driver.join(ada) is ErrorCode.NONE


# -- the mixed group


def test_the_records_restore_a_mixed_group() -> None:
    driver, ada, bob = settled()
    before = driver.consumer.state
    driver.restart()
    after = driver.consumer.state
    assert (after.members, after.targets, after.epoch) == (before.members, before.targets, before.epoch)
    assert driver.heartbeat(ada) is ErrorCode.NONE
    driver.wait(9_999)
    assert ada.member_id in driver.consumer.state.members
    driver.wait(2)
    assert bob.member_id not in driver.consumer.state.members, "the session timeout is the one of the classic member"


def test_a_classic_member_joins_a_group_of_the_new_protocol() -> None:
    driver = with_policy(MigrationPolicy.DISABLED)
    driver.beat("eve")
    ada = ClassicClient("ada")
    assert driver.join(ada) is ErrorCode.NONE, "the policy forbids only conversions"
    assert driver.consumer.state.members[ada.member_id].topics == {"a"}
    described = describe_consumer_group(driver.consumer, driver.topics)
    assert [member.member_type for member in described.members] == [1, 0]


def test_a_member_without_a_shared_protocol_cannot_join() -> None:
    driver, _, _ = settled()
    assert driver.join(ClassicClient("tom", protocols=COOPERATIVE)) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert driver.join(ClassicClient("tom", protocols=(*COOPERATIVE, "range"))) is ErrorCode.NONE


def test_a_request_of_a_wrong_member_gets_kafkas_errors() -> None:
    driver, ada, _ = settled()
    old = replace(ada, generation=2)
    assert driver.heartbeat(old) is driver.sync(old) is ErrorCode.ILLEGAL_GENERATION
    unknown = replace(ada, member_id="nobody")
    assert driver.heartbeat(unknown) is driver.sync(unknown) is ErrorCode.UNKNOWN_MEMBER_ID
    eve = ClassicClient("eve", member_id="eve", generation=3)
    assert driver.heartbeat(eve) is driver.sync(eve) is ErrorCode.UNKNOWN_MEMBER_ID, "eve uses the other protocol"
    assert driver.sync(replace(ada, protocols=("sticky",))) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_classic_member_commits_with_its_epoch_as_generation() -> None:
    driver, ada, _ = settled()
    (kept, *_) = [number for _, number in driver.consumer.state.members[ada.member_id].assigned]
    (moved,) = [number for _, number in driver.consumer.state.members["eve"].assigned]
    driver.consumer.check_commit(commit(driver, ada, 3, moved), driver.now)
    driver.consumer.check_commit(commit(driver, ada, 2, kept), driver.now)
    for generation, number in ((2, moved), (1, kept), (4, kept)):
        with pytest.raises(KafkaError) as refused:
            driver.consumer.check_commit(commit(driver, ada, generation, number), driver.now)
        assert refused.value.code is ErrorCode.ILLEGAL_GENERATION
    with pytest.raises(KafkaError) as refused:
        driver.consumer.check_fetch(ada.member_id, 2)
    assert refused.value.code is ErrorCode.ILLEGAL_GENERATION


def commit(driver: MigrationDriver, client: ClassicClient, generation: int, number: int) -> Commit:
    """Return a client's commit of the partition `number`, in version 8 of OffsetCommit.

    Members that use the KIP-848 protocol cannot use version 8.
    """
    offset = CommittedOffset(1, -1, "", 0, topic_id=driver.topics.id("a"))
    return Commit(client.member_id, generation, None, 8, {TopicPartition("a", number): offset})


def test_a_member_that_does_not_join_again_in_time_is_removed() -> None:
    driver, ada, bob = migrating()
    end = driver.now + 60_000
    while driver.now < end:
        assert {driver.heartbeat(ada), driver.heartbeat(bob)} == {AGAIN}
        driver.beat("eve", driver.consumer.state.members["eve"].epoch)
        driver.wait(5_000)
    assert list(driver.consumer.state.members) == ["eve"]


def test_a_member_that_does_not_sync_in_time_is_removed() -> None:
    driver, ada, bob = migrating()
    driver.join(bob)
    driver.sync(bob)
    driver.join(ada)
    for _ in range(12):
        driver.heartbeat(ada)
        driver.beat("eve", driver.consumer.state.members["eve"].epoch)
        if bob.member_id in driver.consumer.state.members and driver.heartbeat(bob) is AGAIN:
            driver.join(bob)
            driver.sync(bob)
        driver.wait(5_000)
    assert ada.member_id not in driver.consumer.state.members
    assert bob.member_id in driver.consumer.state.members


def test_a_static_member_restarts_with_the_other_protocol_and_keeps_its_partitions() -> None:
    driver = MigrationDriver()
    ada, bob = ClassicClient("ada", instance="i"), ClassicClient("bob")
    driver.stable(ada, bob)
    answer = driver.beat("ada-848", instance="i")
    assert (answer.member_epoch, sorted(assigned(answer))) == (2, [0, 1])
    assert driver.heartbeat(ada) is ErrorCode.FENCED_INSTANCE_ID
    assert driver.heartbeat(bob) is ErrorCode.NONE, "the group does not rebalance"


def test_an_administrator_removes_a_classic_member_by_its_instance_id() -> None:
    driver = MigrationDriver()
    ada, bob = ClassicClient("ada", instance="i"), ClassicClient("bob")
    driver.stable(ada, bob)
    driver.beat("eve")
    assert driver.leave(
        MemberIdentity(member_id="nobody"), MemberIdentity(group_instance_id="i"), MemberIdentity(group_instance_id="j")
    ) == [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert list(driver.consumer.state.members) == [bob.member_id, "eve"]


def test_a_client_changes_its_protocol_and_keeps_its_member_id() -> None:
    driver, ada, _ = settled()
    epoch = driver.consumer.state.epoch
    driver.beat(ada.member_id, 0)
    assert driver.consumer.state.members[ada.member_id].classic is None
    assert driver.consumer.state.epoch == epoch, "the subscription is the same"
