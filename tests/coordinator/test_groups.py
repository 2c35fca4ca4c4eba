"""Tests of the group coordinator, used by the threads of many connections."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from hmb.coordinator import group_runner
from hmb.coordinator.classic.group import ClassicGroup
from hmb.coordinator.classic.settings import GroupSettings
from hmb.coordinator.consumer.requests import ConsumerGroupRequests
from hmb.coordinator.group_runner import GroupRunner, WaitingCall
from hmb.coordinator.groups import GroupCoordinator
from hmb.coordinator.journal.partition import QueuedRecords
from hmb.coordinator.journal.writing import Journal
from hmb.protocol.consumer_protocol import ConsumerProtocolSubscription
from hmb.protocol.enums import GroupState
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from hmb.protocol.messages.heartbeat import HeartbeatRequest
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from hmb.protocol.messages.leave_group import LeaveGroupRequest
from hmb.protocol.messages.sync_group import SyncGroupRequest
from hmb.protocol.topics import OFFSETS_TOPIC
from tests.coordinator.conftest import Topic
from tests.coordinator.consumer.consumer_driver import Topics
from tests.coordinator.settings import consumer_group_settings, group_settings
from tests.waiting import until

MemberIdentity = LeaveGroupRequest.MemberIdentity
Assignment = SyncGroupRequest.SyncGroupRequestAssignment
AT_ONCE = group_settings(initial_delay=0)
Start = Callable[..., GroupCoordinator]


def _coordinator(journal: Journal, settings: GroupSettings = AT_ONCE) -> GroupCoordinator:
    return GroupCoordinator(journal, settings, Topics(), lambda group_id: consumer_group_settings())


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[GroupCoordinator] = []

    def start(journal: Journal, settings: GroupSettings = AT_ONCE) -> GroupCoordinator:
        coordinator = _coordinator(journal, settings)
        started.append(coordinator)
        coordinator.start()
        coordinator.loaded.wait(30)
        return coordinator

    yield start
    for coordinator in started:
        coordinator.stop(time.monotonic() + 30)


@pytest.fixture
def groups(start: Start, journal: Journal) -> GroupCoordinator:
    return start(journal)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as threads:
        yield threads


def joining(member_id: str = "", group_id: str = "g", session: int = 10_000) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=session,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range")],
    )


def join(groups: GroupCoordinator, member_id: str = "", group_id: str = "g") -> JoinGroupResponse:
    return groups.join(WaitingCall("c", "/host"), joining(member_id, group_id))


def sync(groups: GroupCoordinator, member_id: str, generation: int, parts: dict[str, bytes] | None = None) -> bytes:
    request = SyncGroupRequest(
        group_id="g",
        generation_id=generation,
        member_id=member_id,
        assignments=[Assignment(member_id=each, assignment=part) for each, part in (parts or {}).items()],
    )
    answer = groups.sync(WaitingCall(), request)
    if answer.error_code:
        raise KafkaError(ErrorCode(answer.error_code))
    return bytes(answer.assignment)


def member_count(groups: GroupCoordinator) -> int:
    return len(groups.describe("g").members)


def code_of(call: Callable[[], Any]) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        call()
    return raised.value.code


def test_members_in_separate_threads_join_one_generation(groups: GroupCoordinator, threads: ThreadPoolExecutor) -> None:
    first = join(groups).member_id
    others: list[Future[JoinGroupResponse]] = [threads.submit(join, groups) for _ in range(9)]
    until(lambda: member_count(groups) == 10)
    leader = join(groups, first)
    answers = [leader, *(other.result(30) for other in others)]
    assert {(answer.error_code, answer.generation_id, answer.leader) for answer in answers} == {(0, 2, first)}
    ids = [answer.member_id for answer in answers]
    assert sorted(member.member_id for member in leader.members) == sorted(ids)
    followers = {member_id: threads.submit(sync, groups, member_id, 2) for member_id in ids[1:]}
    assert sync(groups, first, 2, {member_id: member_id.encode() for member_id in ids}) == first.encode()
    assert {member_id: part.result(30) for member_id, part in followers.items()} == {
        each: each.encode() for each in ids[1:]
    }
    assert groups.describe("g").group_state == "Stable"


def test_synced_assignments_survive_a_restart(topic: Topic, journal: Journal, start: Start) -> None:
    groups = start(journal)
    member_id = join(groups).member_id
    sync(groups, member_id, 1, {member_id: b"part"})
    groups.stop(time.monotonic() + 30)
    topic.reopen()
    again = start(Journal(topic, must_sync=lambda: True))
    again.heartbeat(HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id))
    assert sync(again, member_id, 1) == b"part"
    assert again.leave("g", [MemberIdentity(member_id=member_id)]) == [ErrorCode.NONE]
    again.stop(time.monotonic() + 30)
    topic.reopen()
    (listed,) = start(Journal(topic, must_sync=lambda: True)).list_groups([], [])
    assert (listed.group_id, listed.group_state, listed.protocol_type) == ("g", "Empty", "consumer")


def test_the_timer_ends_requests_that_no_member_ends(
    start: Start, journal: Journal, threads: ThreadPoolExecutor
) -> None:
    groups = start(journal, group_settings(min_session_timeout=1, initial_delay=0))
    join(groups)
    groups.join(WaitingCall(), joining(group_id="other", session=50))
    until(lambda: groups.describe("other").group_state == "Empty")
    assert groups.describe("g").group_state == "CompletingRebalance"


def test_a_waiting_client_that_disconnects_frees_its_thread(
    groups: GroupCoordinator, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_runner, "CLIENT_CHECK_INTERVAL", 0.001)
    first = join(groups).member_id
    gone = threading.Event()
    waiting = threads.submit(groups.join, WaitingCall(is_client_gone=gone.is_set), joining())
    until(lambda: member_count(groups) == 2)
    assert not waiting.done()
    gone.set()
    assert code_of(lambda: waiting.result(30)) is ErrorCode.NETWORK_EXCEPTION
    # As in Kafka, the member stays until its session ends.
    assert {member.member_id for member in join(groups, first).members} > {first}


def test_a_stop_answers_all_waiting_members(groups: GroupCoordinator, threads: ThreadPoolExecutor) -> None:
    join(groups)
    waiting = threads.submit(join, groups)
    until(lambda: member_count(groups) == 2)
    groups.stop(time.monotonic() + 30)
    assert waiting.result(30).error_code == ErrorCode.NOT_COORDINATOR
    assert code_of(lambda: join(groups)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert code_of(lambda: join(groups, group_id="new")) is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_members_wait_and_keep_their_sessions_while_the_journal_loads(topic: Topic) -> None:
    groups = _coordinator(Journal(topic, must_sync=lambda: True))
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert code_of(lambda: join(groups)) is loading
    assert code_of(lambda: sync(groups, "m", 1)) is loading
    assert code_of(lambda: groups.leave("g", [MemberIdentity(member_id="m")])) is loading
    assert code_of(lambda: groups.describe("g")) is loading
    assert code_of(lambda: groups.list_groups([], [])) is loading
    assert code_of(lambda: groups.delete("g")) is loading
    groups.heartbeat(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"))


def test_unknown_groups_and_invalid_requests(groups: GroupCoordinator) -> None:
    unknown, invalid = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.INVALID_GROUP_ID
    assert code_of(lambda: join(groups, "m")) is unknown
    assert code_of(lambda: sync(groups, "m", 1)) is unknown
    assert code_of(lambda: groups.heartbeat(HeartbeatRequest(group_id="g"))) is unknown
    assert groups.leave("g", [MemberIdentity(), MemberIdentity()]) == [unknown, unknown]
    assert code_of(lambda: groups.describe("g")) is code_of(lambda: groups.delete("g")) is ErrorCode.GROUP_ID_NOT_FOUND
    assert code_of(lambda: join(groups, group_id="")) is invalid
    assert code_of(lambda: groups.heartbeat(HeartbeatRequest(group_id=""))) is invalid
    assert code_of(lambda: groups.leave("", [])) is invalid
    for session in (5_999, 1_800_001, -1):
        request = joining(session=session)
        assert code_of(lambda request=request: groups.join(WaitingCall(), request)) is ErrorCode.INVALID_SESSION_TIMEOUT
    assert groups.list_groups([], []) == []


def test_groups_are_listed_by_state_and_type(groups: GroupCoordinator) -> None:
    join(groups, group_id="joined")
    groups.join(WaitingCall(version=9), joining(group_id="asked"))

    def listed(states: list[str], types: list[str]) -> list[str]:
        return sorted(group.group_id for group in groups.list_groups(states, types))

    assert listed([], []) == listed([], ["Classic"]) == ["asked", "joined"]
    assert listed(["empty"], []) == ["asked"]
    assert listed([" CompletingRebalance", "Stable"], ["classic", "share"]) == ["joined"]
    assert listed(["nonsense"], []) == listed([], ["consumer"]) == listed([], ["nonsense"]) == []


def test_a_deleted_group_stays_deleted_after_a_restart(topic: Topic, journal: Journal, start: Start) -> None:
    groups = start(journal)
    member_id = join(groups).member_id
    assert code_of(lambda: groups.delete("g")) is ErrorCode.NON_EMPTY_GROUP
    groups.leave("g", [MemberIdentity(member_id=member_id)])
    groups.delete("g")
    assert code_of(lambda: groups.delete("g")) is ErrorCode.GROUP_ID_NOT_FOUND
    assert join(groups).generation_id == 1
    groups.stop(time.monotonic() + 30)
    topic.reopen()
    assert start(Journal(topic, must_sync=lambda: True)).list_groups([], []) == []


def test_a_member_that_joins_a_group_during_its_deletion_must_try_again(
    groups: GroupCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def then_deleted(group_id: str, found: Callable[[str], GroupRunner] = groups._table.find_or_make) -> GroupRunner:
        group = found(group_id)
        groups.delete(group_id)
        return group

    heartbeat = partial(ConsumerGroupRequests(groups).heartbeat, client_id="c", client_host="/host", version=1)
    new = ConsumerGroupHeartbeatRequest(
        group_id="new", member_id="m", rebalance_timeout_ms=1, subscribed_topic_names=["t"], topic_partitions=[]
    )
    heartbeat(new)
    heartbeat(ConsumerGroupHeartbeatRequest(group_id="new", member_id="m", member_epoch=-1))
    monkeypatch.setattr(groups._table, "find_or_make", then_deleted)
    assert code_of(lambda: join(groups, group_id="new")) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    # A member that joins finds a new classic group, which is deleted before the member can join.
    assert code_of(lambda: heartbeat(new)) is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_classic_member_of_a_kip_848_group_gets_no_response_before_it_is_on_disk(
    groups: GroupCoordinator, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m", rebalance_timeout_ms=1, subscribed_topic_names=["t"], topic_partitions=[]
    )
    ConsumerGroupRequests(groups).heartbeat(new, client_id="c", client_host="/host", version=1)
    request = joining("classic")
    request.protocols[0].metadata = ConsumerProtocolSubscription(topics=["t"]).versioned(3)

    def join_group() -> JoinGroupResponse:
        return groups.join(WaitingCall("c", "/host"), request)

    with monkeypatch.context() as patch:
        patch.setattr(journal, "write", _fail)
        assert code_of(join_group) is ErrorCode.NOT_COORDINATOR
    assert [each.member_id for each in ConsumerGroupRequests(groups).describe("g").members] == ["m"]
    assert join_group().error_code == 0


def test_a_group_change_that_cannot_be_written_has_no_effect(
    groups: GroupCoordinator, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    member_id = join(groups).member_id
    with monkeypatch.context() as patch:
        patch.setattr(journal, "write", _fail)
        assert code_of(lambda: sync(groups, member_id, 1, {member_id: b"part"})) is ErrorCode.NOT_COORDINATOR
    assert groups.describe("g").group_state == GroupState.PREPARING_REBALANCE.value
    sync(groups, member_id, join(groups, member_id).generation_id, {member_id: b"part"})
    with monkeypatch.context() as patch:
        patch.setattr(journal, "write", _fail)
        leaving = [MemberIdentity(member_id=member_id)]
        assert code_of(lambda: groups.leave("g", leaving)) is ErrorCode.NOT_COORDINATOR
        assert code_of(lambda: groups.delete("g")) is ErrorCode.NOT_COORDINATOR
        patch.setattr(journal, "enqueue", _fail)
        assert code_of(lambda: groups.delete("g")) is ErrorCode.NOT_COORDINATOR
    assert groups.describe("g").group_state == GroupState.EMPTY.value
    groups.delete("g")


def test_an_internal_error_during_a_deletion_leaves_the_group_unchanged(
    groups: GroupCoordinator, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = groups.join(WaitingCall(version=9), joining()).member_id
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(journal, "write", _break_down)
        groups.delete("g")
    assert groups.describe("g").group_state == "Empty"
    assert join(groups, given).generation_id == 1


def test_deleting_consumer_offsets_does_not_delete_a_new_group(
    groups: GroupCoordinator, journal: Journal, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = groups._table.find_or_make("g")

    def write(place: QueuedRecords, write: Callable[[QueuedRecords], None] = journal.write) -> None:
        write(place)
        threads.submit(groups.on_topics_deleted, {OFFSETS_TOPIC: UUID(int=0)})
        until(lambda: groups._table.get("g") is not old)
        groups._table.find_or_make("g")

    monkeypatch.setattr(journal, "write", write)
    groups.delete("g")
    assert groups._table.get("g") is not old


def test_a_group_that_fails_at_the_start_does_not_stop_the_others(
    start: Start, topic: Topic, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = start(Journal(topic, must_sync=lambda: False))
    for group_id in ("bad", "good"):
        before._table.find_or_make(group_id)
    resume = ClassicGroup.resume

    def failing(group: ClassicGroup, now: int) -> None:
        if group.group_id == "bad":
            raise ZeroDivisionError("planted")
        resume(group, now)

    monkeypatch.setattr(ClassicGroup, "resume", failing)
    after = _coordinator(Journal(topic, must_sync=lambda: False))
    after._table = before._table
    after.start()
    assert after.loaded.wait(30)
    after.stop(time.monotonic() + 30)
    assert "group bad: the group is not restored" in caplog.text and "planted" in caplog.text


def test_an_internal_error_in_the_journal_leaves_no_member_waiting(
    groups: GroupCoordinator, journal: Journal, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader = join(groups).member_id
    joining = threads.submit(join, groups)
    until(lambda: member_count(groups) == 2)
    join(groups, leader)
    follower = threads.submit(sync, groups, joining.result(30).member_id, 2)
    until(lambda: any(member.syncing for member in groups._table.find_or_make("g").as_kind(ClassicGroup).state.members))

    monkeypatch.setattr(journal, "write", _break_down)
    assert code_of(lambda: sync(groups, leader, 2)) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert code_of(lambda: follower.result(30)) is ErrorCode.UNKNOWN_SERVER_ERROR


def _break_down(*_: object) -> None:
    raise ZeroDivisionError


def _fail(*_: object) -> None:
    raise KafkaError(ErrorCode.NOT_COORDINATOR, "the disk is full")
