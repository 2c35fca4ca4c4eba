"""Tests of classic groups: the cases that the scripts of test_group_scripts.py do not cover."""

from __future__ import annotations

import pytest

from hmb.coordinator.classic.description import describe_classic_group
from hmb.coordinator.classic.group import ClassicGroup
from hmb.coordinator.journal.records import GroupMetadataKey, GroupMetadataValue, decode_value
from hmb.protocol.enums import GroupState
from hmb.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.classic.group_driver import GroupDriver, static
from tests.coordinator.settings import group_settings

AT_ONCE = group_settings(initial_delay=0)


@pytest.fixture
def driver() -> GroupDriver:
    return GroupDriver()


def test_the_protocol_with_the_most_votes_wins(driver: GroupDriver) -> None:
    for client, names in {"a": "range sticky", "b": "sticky range", "c": "other sticky range"}.items():
        driver.join(client, version=3, protocols=[(name, name.encode()) for name in names.split()])
    driver.wait(10_000)
    leader = driver.joined(next(iter(driver.answers)))
    assert leader.protocol_name == "sticky"
    assert [member.metadata for member in leader.members] == [b"sticky"] * 3


@pytest.mark.parametrize("version", range(10))
def test_only_clients_from_version_4_on_get_a_member_id_first(driver: GroupDriver, version: int) -> None:
    call = driver.join("a", version=version)
    assert (call in driver.answers) == (version >= 4)
    assert len(driver.group.state.members) == (version < 4)


def test_a_pending_member_is_removed_after_its_session_timeout(driver: GroupDriver) -> None:
    member_id = driver.joined(driver.join("a", session=6_000)).member_id
    driver.wait(5_999)
    assert driver.group.state.pending
    driver.wait(1)
    assert not driver.group.state.pending
    assert driver.joined(driver.join("a", member_id)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_removed_pending_member_does_not_end_the_initial_delay(driver: GroupDriver) -> None:
    joining = driver.join("a", version=3)
    driver.join("b", session=1_000)
    driver.wait(2_999)
    assert not driver.group.state.pending
    assert joining not in driver.answers
    driver.wait(1)
    assert driver.joined(joining).generation_id == 1


def test_a_static_member_does_not_join_with_an_assigned_member_id(driver: GroupDriver) -> None:
    member_id = driver.joined(driver.join("a")).member_id
    answer = driver.joined(driver.join("a", member_id, instance="i"))
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert not driver.group.state.members


def test_a_repeated_join_group_replaces_the_waiting_one(driver: GroupDriver) -> None:
    """A repeated JoinGroup takes the place of the first one, and the first one gets a response.

    A client sends JoinGroup again after it has lost its connection. The thread that handles the first request must not
    wait forever.
    """
    first_id, _ = driver.stable("a", "b")
    old = driver.join("a", first_id)
    new = driver.join("a", first_id)
    assert driver.joined(old).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    driver.wait(60_000)
    assert (driver.joined(new).error_code, driver.joined(new).generation_id) == (ErrorCode.NONE, 2)


def test_a_repeated_sync_group_replaces_the_waiting_one(driver: GroupDriver) -> None:
    _, second = (driver.join(client, version=3) for client in "ab")
    driver.wait(10_000)
    member_id = driver.joined(second).member_id
    old, new = driver.sync(member_id, 1), driver.sync(member_id, 1)
    assert driver.synced(old).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    driver.sync(driver.joined(second).leader, 1, {member_id: b"part"})
    assert driver.synced(new).assignment == b"part"


def test_a_waiting_sync_group_of_a_leaving_member_gets_a_response(driver: GroupDriver) -> None:
    _, second = (driver.join(client, version=3) for client in "ab")
    driver.wait(10_000)
    member_id = driver.joined(second).member_id
    waiting = driver.sync(member_id, 1)
    assert driver.leave(member_id) == [ErrorCode.NONE]
    assert driver.synced(waiting).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_unchanged_follower_gets_the_generation_and_the_leader_starts_a_rebalance(driver: GroupDriver) -> None:
    leader, follower = driver.stable("a", "b")
    answer = driver.joined(driver.join("b", follower))
    assert (answer.generation_id, answer.leader, answer.members) == (1, leader, [])
    assert driver.group.state.current is GroupState.STABLE
    driver.join("a", leader)
    assert driver.group.state.current is GroupState.PREPARING_REBALANCE


def test_a_lost_join_response_is_sent_again(driver: GroupDriver) -> None:
    leader, follower = (driver.join(client, version=3) for client in "ab")
    driver.wait(10_000)
    for call, count in ((leader, 2), (follower, 0)):
        again = driver.joined(driver.join("x", driver.joined(call).member_id))
        assert (again.generation_id, len(again.members)) == (1, count)
    assert driver.group.state.current is GroupState.COMPLETING_REBALANCE


def test_a_sync_group_must_name_the_groups_protocol(driver: GroupDriver) -> None:
    (member_id,) = driver.stable("a")
    assert driver.synced(driver.sync(member_id, 1, protocol_type="consumer", protocol="range")).error_code == 0
    for wrong in ({"protocol_type": "connect"}, {"protocol": "sticky"}):
        answer = driver.synced(driver.sync(member_id, 1, **wrong))
        assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_static_member_that_returns_during_a_slow_write_joins_the_next_rebalance(
    driver: GroupDriver,
) -> None:
    driver.stable("a", instance="i")
    driver.holds = True
    back = driver.join("a", instance="i")
    driver.join("b", version=3)
    assert driver.joined(back).generation_id == 2
    driver.write()
    assert driver.joined(back).generation_id == 2
    assert driver.group.state.members.by_id["i-2"].joining is None


def test_a_static_member_that_returns_during_a_slow_write_keeps_its_session(driver: GroupDriver) -> None:
    driver.stable("a", instance="i", session=10_000)
    driver.holds = True
    back = driver.join("a", instance="i", session=10_000)
    driver.wait(12_000)  # The write takes longer than the session timeout.
    driver.holds = False
    driver.write()
    driver.wait(1)
    assert driver.heartbeat(driver.joined(back).member_id, 1, instance="i") == ErrorCode.NONE


def test_a_static_member_that_restarts_before_its_sync_group_must_still_sync(driver: GroupDriver) -> None:
    """A static member restarts before it sends SyncGroup, and gets a new member id.

    HMB waits for a SyncGroup request with the new member id, so the group becomes Stable. Kafka waits for a SyncGroup
    request with the old member id. The member never sends a request with the old id, so Kafka starts a rebalance.
    """
    leader, second = (driver.join(name, version=5, instance=name, rebalance=5_000) for name in "ab")
    driver.wait(5_000)
    driver.sync(driver.joined(leader).member_id, 1, {driver.joined(second).member_id: b"part"})
    back = driver.joined(driver.join("b", instance="b", rebalance=5_000)).member_id
    assert driver.synced(driver.sync(back, 1, instance="b")).assignment == b"part"
    driver.wait(5_000)
    assert driver.group.state.current is GroupState.STABLE


def test_a_rebalance_timeout_of_0_does_not_spin_while_static_members_are_away(driver: GroupDriver) -> None:
    first, second = driver.join("a", instance="i"), driver.join("b", instance="j")
    driver.wait(6_000)  # The second member has extended the initial rebalance, which ends now.
    driver.sync(driver.joined(second).member_id, 1)
    driver.sync(driver.joined(first).member_id, 1, {})
    for instance in "ij":
        driver.join("c", instance=instance, rebalance=0)  # The static member restarts, and the group stays Stable.
    driver.leave(static("j"))
    assert driver.group.state.current is GroupState.PREPARING_REBALANCE
    deadline = driver.group.next_deadline()
    assert deadline is not None and deadline > driver.now
    driver.wait(10_000)  # The member's session times out.
    assert driver.group.state.current is GroupState.EMPTY


def test_several_members_that_leave_together_cause_one_rebalance() -> None:
    driver = GroupDriver(AT_ONCE)
    driver.join("a", version=3, instance="i")
    driver.join("b", version=3)
    driver.join("a", "i-1", instance="i")
    outcomes = driver.leave(static("i"), "b-2", "b-2", static("i", "i-1"), static("none"))
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert outcomes == [ErrorCode.NONE, ErrorCode.NONE, unknown, unknown, unknown]
    assert (driver.group.state.current, driver.group.state.generation) == (GroupState.EMPTY, 3)


def test_the_record_contains_the_whole_state_of_the_group(driver: GroupDriver) -> None:
    driver.stable("a", instance="i", session=7_000, rebalance=8_000, protocols=[("range", b"topics"), ("other", b"x")])
    assert driver.written is not None
    value = decode_value(GroupMetadataKey(group="g"), driver.written)
    assert value == GroupMetadataValue(
        protocol_type="consumer",
        generation=1,
        protocol="range",
        leader="i-1",
        current_state_timestamp=3_000,
        members=[
            GroupMetadataValue.MemberMetadata(
                member_id="i-1",
                group_instance_id="i",
                client_id="a",
                client_host="/a.example",
                rebalance_timeout=8_000,
                session_timeout=7_000,
                subscription=b"topics",
                assignment=b"i-1",
            )
        ],
    )
    before = describe_classic_group(driver.group.state)
    driver.restart()
    assert describe_classic_group(driver.group.state) == before
    assert driver.heartbeat("i-1", 1, "i") == ErrorCode.NONE


def test_an_empty_group_is_written_with_its_generation_and_no_members(driver: GroupDriver) -> None:
    (member_id,) = driver.stable("a")
    driver.leave(member_id)
    driver.restart()
    assert (driver.group.state.current, driver.group.state.generation) == (GroupState.EMPTY, 2)
    assert (driver.group.protocol_type, driver.group.state.protocol) == ("consumer", None)
    assert not driver.group.state.members


def test_a_record_without_a_rebalance_timeout_uses_the_session_timeout() -> None:
    member = GroupMetadataValue.MemberMetadata(member_id="m", session_timeout=7_000, rebalance_timeout=-1)
    value = GroupMetadataValue(protocol_type="consumer", generation=3, protocol="range", leader="m", members=[member])
    group = ClassicGroup.restore("g", value, group_settings(), lambda: 0)
    assert group.state.members.by_id["m"].rebalance_timeout == 7_000


def test_restored_members_get_a_new_session_at_the_end_of_the_load(driver: GroupDriver) -> None:
    """Restored members get a new session when the broker has loaded all groups.

    Before a bug was fixed, the old sessions continued. If loading took longer than the session timeout, the sessions
    were then expired, and the coordinator removed all members.
    """
    (member_id,) = driver.stable("a")
    assert driver.written is not None
    value = decode_value(GroupMetadataKey(group="g"), driver.written)
    driver.group = ClassicGroup.restore("g", value, driver.settings, lambda: 0)
    driver.wait(100_000)  # While the broker loads all groups, 100 s pass.
    assert driver.heartbeat(member_id, 1) == ErrorCode.NONE
    driver.group.resume(driver.now)
    driver.wait(9_999)
    assert member_id in driver.group.state.members
    driver.wait(1)
    assert member_id not in driver.group.state.members


def test_a_restored_group_above_its_largest_size_rebalances() -> None:
    driver = GroupDriver(AT_ONCE)
    driver.join("a", version=3)
    driver.join("b", version=3)
    driver.join("a", "a-1")
    driver.sync("a-1", 2, {})
    driver.settings = group_settings(max_size=1)
    driver.restart()
    assert driver.group.state.current is GroupState.PREPARING_REBALANCE


def test_a_stop_of_the_broker_answers_waiting_members_with_not_coordinator(driver: GroupDriver) -> None:
    leader, follower = driver.stable("a", "b")
    joining = driver.join("a", leader)
    driver.group.unload()
    driver.settle()
    assert driver.joined(joining).error_code == ErrorCode.NOT_COORDINATOR
    assert driver.joined(joining).member_id == leader
    assert driver.group.next_deadline() is None
    driver.restart()
    driver.join("a", leader)
    driver.join("b", follower)
    syncing = driver.sync(follower, 2)
    driver.group.unload()
    driver.settle()
    assert driver.synced(syncing).error_code == ErrorCode.NOT_COORDINATOR


def test_a_dead_group_is_not_available(driver: GroupDriver) -> None:
    (member_id,) = driver.stable("a")
    driver.group.unload()
    gone = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.joined(driver.join("b")).error_code == driver.joined(driver.join("a", member_id)).error_code == gone
    assert driver.synced(driver.sync(member_id, 1)).error_code == gone
    assert driver.heartbeat(member_id, 1) == driver.commit(member_id, 1) == driver.commit() == gone
    with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
        driver.leave(member_id)


def test_a_commit_keeps_a_session_alive(driver: GroupDriver) -> None:
    (member_id,) = driver.stable("a")
    for _ in range(5):
        driver.wait(9_000)
        assert driver.commit(member_id, 1) == ErrorCode.NONE
    assert member_id in driver.group.state.members


def test_a_group_is_described_with_its_members_metadata_only_when_it_is_stable(driver: GroupDriver) -> None:
    first, _ = driver.stable("a", "b", protocols=[("range", b"topics")])
    described = describe_classic_group(driver.group.state)
    assert (described.group_state, described.protocol_type, described.protocol_data) == ("Stable", "consumer", "range")
    assert [
        (m.member_id, m.client_id, m.client_host, m.member_metadata, m.member_assignment) for m in described.members
    ] == [
        ("a-1", "a", "/a.example", b"topics", b"a-1"),
        ("b-2", "b", "/b.example", b"topics", b"b-2"),
    ]
    driver.join("a", first)
    described = describe_classic_group(driver.group.state)
    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    assert [member.member_metadata for member in described.members] == [b"", b""]


def test_only_an_empty_group_is_deleted_and_once(driver: GroupDriver) -> None:
    (member_id,) = driver.stable("a")
    with pytest.raises(KafkaError, match="NON_EMPTY_GROUP"):
        driver.group.tombstones()
    driver.leave(member_id)
    assert [value for _, value in driver.group.tombstones()] == [None]
    driver.group.unload()
    with pytest.raises(KafkaError, match="GROUP_ID_NOT_FOUND"):
        driver.group.tombstones()
