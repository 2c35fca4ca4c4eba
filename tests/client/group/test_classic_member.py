"""Tests of a member of a classic group, step by step: its requests and the calls of its listener."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest

from hmb.client.group.classic_member import ClassicGroupMember
from hmb.client.group.interface import GroupMetadata
from hmb.client.group.member import NEVER, ListenerCall, TopicLookup, TopicLookupResult
from hmb.client.group.member_metadata import parse_assignment, subscriptions
from hmb.client.group.member_states import ClassicMemberState
from hmb.protocol.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from hmb.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from hmb.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from hmb.protocol.topics import TopicPartition
from tests.client.group.listener_calls import assigned, lost, revoked
from tests.client.group.members import member_settings

T = TypeVar("T")
ME, OTHER = "me-1", "other-2"
COOPERATIVE = ("cooperative-sticky",)


def owned(*numbers: int, topic: str = "a") -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, number) for number in numbers)


def assignment(*numbers: int) -> bytes:
    topic = ConsumerProtocolAssignment.TopicPartition(topic="a", partitions=list(numbers))
    return ConsumerProtocolAssignment(assigned_partitions=[topic] if numbers else []).versioned(1)


class Driven:
    """A group member without threads. The test calls the member's methods directly, and sets the time."""

    def __init__(self, *topics: str, **settings: Any) -> None:
        self.member = ClassicGroupMember(member_settings(**settings))
        self.now = 1000.0
        self.member.polled(self.now)
        self.member.subscribe(topics or ("a",))

    @property
    def state(self) -> ClassicMemberState:
        return self.member.state

    def request(self, kind: type[T]) -> T:
        request = self.member.next_request(self.now)
        assert isinstance(request, kind), request
        return request

    def answer(self, response: object) -> None:
        request = self.member.next_request(self.now)
        assert request is not None
        self.member.response_received(request, response, self.now)

    def calls(self) -> list[ListenerCall]:
        """Return all pending calls to the rebalance listener, and report each one to the member as finished."""
        calls = []
        while (call := self.member.next_call()) is not None:
            self.member.call_finished(call)
            calls.append(call)
        return calls

    def join(self, generation: int = 1, leader: str = OTHER, assignor: str = "range", **more: Any) -> None:
        response = JoinGroupResponse(
            generation_id=generation, member_id=ME, leader=leader, protocol_name=assignor, **more
        )
        self.answer(response)

    def join_and_sync(self, *numbers: int, generation: int = 1, assignor: str = "range") -> list[ListenerCall]:
        """Move a follower from the state UNJOINED to STABLE. Return the calls of its listener."""
        calls = self.calls()
        self.join(generation, assignor=assignor)
        self.answer(SyncGroupResponse(assignment=assignment(*numbers)))
        return calls + self.calls()

    def heartbeat(self, code: ErrorCode = ErrorCode.NONE) -> None:
        """Wait for the next heartbeat, and answer it with `code`."""
        self.now = max(self.now, self.member.deadline())
        self.request(HeartbeatRequest)
        self.answer(HeartbeatResponse(error_code=code))


def joined_as(*members: str) -> list[JoinGroupResponse.JoinGroupResponseMember]:
    """Return the members in a JoinGroup response to the leader. All members subscribe to topic a."""
    subscription = subscriptions(["range"], ["a"], owned(), owned(), -1)[0].metadata
    return [JoinGroupResponse.JoinGroupResponseMember(member_id=it, metadata=subscription) for it in members]


def test_a_member_sends_no_request_before_it_subscribes() -> None:
    member = ClassicGroupMember(member_settings())
    member.polled(0)
    assert member.next_call() is None and member.next_request(0) is None and member.is_stable
    assert member.deadline() == NEVER


def test_a_member_joins_with_the_id_from_the_coordinator() -> None:
    driven = Driven("b", "a", session_timeout=7, max_poll_interval=11)
    assert driven.calls() == []
    request = driven.request(JoinGroupRequest)
    assert (request.member_id, request.session_timeout_ms, request.rebalance_timeout_ms) == ("", 7000, 11000)
    assert [it.name for it in request.protocols] == ["range", "cooperative-sticky"]
    subscription, version = ConsumerProtocolSubscription.parse(request.protocols[0].metadata)
    assert (subscription.topics, subscription.owned_partitions, version) == (["a", "b"], [], 3)
    driven.answer(JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=ME))
    assert driven.request(JoinGroupRequest).member_id == ME
    assert driven.member.response_timeout(request) == 11 + 30


def test_a_follower_requests_its_assignment_and_applies_it_when_the_consumer_polls() -> None:
    driven = Driven()
    driven.calls()
    driven.join(generation=4)
    request = driven.request(SyncGroupRequest)
    assert (request.generation_id, request.member_id, request.protocol_name) == (4, ME, "range")
    assert request.assignments == []
    driven.answer(SyncGroupResponse(assignment=assignment(0, 2)))
    assert driven.member.assignment == owned() and not driven.member.is_stable
    assert driven.calls() == [assigned(owned(0, 2))]
    assert driven.member.assignment == owned(0, 2) and driven.member.is_stable
    assert driven.member.metadata == GroupMetadata("g", 4, ME)


def test_a_leader_looks_up_the_topics_and_assigns_their_partitions() -> None:
    driven = Driven()
    driven.calls()
    driven.join(leader=ME, members=joined_as(ME, OTHER))
    assert driven.request(TopicLookup).names == {"a"}
    driven.answer(TopicLookupResult({"a": 3}, {}))
    shares = {it.member_id: it.assignment for it in driven.request(SyncGroupRequest).assignments}
    assert {member_id: parse_assignment(it) for member_id, it in shares.items()} == {ME: owned(0, 1), OTHER: owned(2)}


def test_a_leader_that_need_not_assign_sends_no_assignment_and_still_watches_the_topics() -> None:
    driven = Driven(group_instance_id="i", metadata_max_age=50.0)
    driven.calls()
    driven.join(leader=ME, members=joined_as(ME), skip_assignment=True)
    assert driven.request(SyncGroupRequest).assignments == []
    driven.answer(SyncGroupResponse(assignment=assignment(0)))
    driven.calls()
    driven.answer(TopicLookupResult({"a": 1}, {}))
    assert driven.member.is_stable
    driven.now += 50
    driven.heartbeat()
    driven.answer(TopicLookupResult({"a": 2}, {}))
    assert driven.state is ClassicMemberState.UNJOINED


def test_a_leader_rebalances_when_topics_change_and_checks_sooner_if_one_is_missing() -> None:
    driven = Driven(metadata_max_age=100.0, heartbeat_interval=3.0)
    driven.calls()
    driven.join(leader=ME, members=joined_as(ME))
    driven.answer(TopicLookupResult({}, {}))
    driven.answer(SyncGroupResponse(assignment=assignment()))
    assert driven.calls() == [assigned(owned())]
    driven.heartbeat()
    driven.answer(TopicLookupResult({"a": 2}, {}))
    assert driven.state is ClassicMemberState.UNJOINED


def test_an_eager_member_gives_up_everything_before_it_joins_again() -> None:
    driven = Driven()
    driven.join_and_sync(0, 1)
    driven.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert driven.state is ClassicMemberState.UNJOINED
    driven.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)  # Heartbeats continue until the consumer polls.
    assert driven.calls() == [revoked(owned(0, 1))]
    assert driven.request(JoinGroupRequest).member_id == ME
    driven.join(generation=2)
    driven.answer(SyncGroupResponse(assignment=assignment(1)))
    assert driven.calls() == [assigned(owned(1))]


def test_a_cooperative_member_gives_up_only_partitions_that_move() -> None:
    driven = Driven(assignors=COOPERATIVE)
    driven.join_and_sync(0, 1, assignor="cooperative-sticky", generation=3)
    driven.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert driven.calls() == []  # The member continues to read.
    subscription, _ = ConsumerProtocolSubscription.parse(driven.request(JoinGroupRequest).protocols[0].metadata)
    assert [(it.topic, it.partitions) for it in subscription.owned_partitions] == [("a", [0, 1])]
    assert subscription.generation_id == 3
    driven.join(generation=4, assignor="cooperative-sticky")
    driven.answer(SyncGroupResponse(assignment=assignment(0)))
    assert driven.calls() == [revoked(owned(1)), assigned(owned())]
    assert driven.member.assignment == owned(0)
    driven.request(JoinGroupRequest)


def test_a_cooperative_member_gives_up_a_topic_that_it_no_longer_subscribes_to() -> None:
    driven = Driven("a", "b", assignors=COOPERATIVE)
    driven.join_and_sync(0, assignor="cooperative-sticky")
    driven.member.subscribe(["b"])
    assert driven.calls() == [revoked(owned(0))]
    subscription, _ = ConsumerProtocolSubscription.parse(driven.request(JoinGroupRequest).protocols[0].metadata)
    assert (subscription.topics, subscription.owned_partitions) == (["b"], [])


def test_a_sticky_member_sends_its_previous_partitions_after_it_has_given_them_up() -> None:
    driven = Driven(assignors=("sticky",))
    driven.join_and_sync(0, 1, assignor="sticky", generation=8)
    driven.heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    driven.calls()
    subscription, _ = ConsumerProtocolSubscription.parse(driven.request(JoinGroupRequest).protocols[0].metadata)
    assert subscription.owned_partitions == []
    topics_count, name, numbers, generation = "00000001", "0001 61", "00000002 00000000 00000001", "00000008"
    assert bytes(subscription.user_data or b"") == bytes.fromhex(topics_count + name + numbers + generation)


def test_a_change_of_the_subscription_while_it_joins_makes_it_join_once_more() -> None:
    driven = Driven()
    driven.calls()
    request = driven.request(JoinGroupRequest)
    driven.member.subscribe(["a", "b"])
    driven.member.response_received(
        request, JoinGroupResponse(generation_id=1, member_id=ME, leader=OTHER, protocol_name="range"), driven.now
    )
    driven.answer(SyncGroupResponse(assignment=assignment(0)))
    assert driven.calls() == [assigned(owned(0)), revoked(owned(0))]
    subscription, _ = ConsumerProtocolSubscription.parse(driven.request(JoinGroupRequest).protocols[0].metadata)
    assert subscription.topics == ["a", "b"]


def test_the_same_subscription_again_changes_nothing() -> None:
    driven = Driven()
    driven.join_and_sync(0)
    driven.member.subscribe(["a"])
    assert driven.state is ClassicMemberState.STABLE


def test_a_member_that_the_group_removed_has_lost_its_partitions() -> None:
    for code, member_id in ((ErrorCode.UNKNOWN_MEMBER_ID, ""), (ErrorCode.ILLEGAL_GENERATION, ME)):
        driven = Driven(assignors=COOPERATIVE)
        driven.join_and_sync(0, 1, assignor="cooperative-sticky")
        driven.heartbeat(code)
        assert driven.member.metadata.generation_id == -1
        assert driven.member.next_request(driven.now) is None  # An unknown member sends no heartbeats.
        assert driven.calls() == [lost(owned(0, 1))]
        request = driven.request(JoinGroupRequest)
        subscription, _ = ConsumerProtocolSubscription.parse(request.protocols[0].metadata)
        assert (request.member_id, subscription.owned_partitions, subscription.generation_id) == (member_id, [], -1)


def test_partitions_that_are_applied_after_the_removal_are_lost_at_once() -> None:
    driven = Driven()
    driven.calls()
    driven.join()
    driven.answer(SyncGroupResponse(assignment=assignment(0)))
    call = driven.member.next_call()
    assert call == assigned(owned(0))
    driven.heartbeat(ErrorCode.UNKNOWN_MEMBER_ID)  # The response arrives while the listener is running.
    driven.member.call_finished(call)
    assert driven.calls() == [lost(owned(0))]


def test_a_sync_that_comes_too_late_leads_to_the_next_rebalance() -> None:
    driven = Driven()
    driven.calls()
    driven.join()
    driven.answer(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    assert driven.calls() == []
    driven.request(JoinGroupRequest)


def test_a_heartbeat_response_from_before_the_join_is_ignored() -> None:
    driven = Driven()
    driven.join_and_sync(0)
    driven.now = driven.member.deadline()
    heartbeat = driven.request(HeartbeatRequest)
    driven.member.subscribe(["b"])
    driven.calls()
    response = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    driven.member.response_received(heartbeat, response, driven.now)
    driven.join()
    driven.answer(SyncGroupResponse(assignment=assignment(0)))
    assert driven.calls() == [assigned(owned(0))] and driven.member.is_stable


@pytest.mark.parametrize("code", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR])
def test_requests_to_a_coordinator_that_is_not_ready_are_repeated_after_growing_pauses(code: ErrorCode) -> None:
    driven = Driven(retry_backoff=0.5)
    driven.calls()
    pauses = []
    for _ in range(3):
        driven.answer(JoinGroupResponse(error_code=code))
        assert driven.member.next_request(driven.now) is None
        pauses.append(driven.member.deadline() - driven.now)
        driven.now = driven.member.deadline()
        driven.request(JoinGroupRequest)
        driven.member.request_failed(driven.now)
        driven.now = driven.member.deadline()
    assert pauses == [0.5, 1.0, 1.0]
    driven.join()
    driven.answer(SyncGroupResponse(error_code=code))
    driven.now = driven.member.deadline()
    driven.answer(SyncGroupResponse(assignment=assignment(0)))
    driven.calls()
    driven.heartbeat(code)
    assert driven.member.is_stable and driven.member.deadline() - driven.now == 0.5


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "none of the assignors .*range.*; give this consumer one"),
        (ErrorCode.INVALID_SESSION_TIMEOUT, "a session timeout of 45 s; choose one between"),
        (ErrorCode.FENCED_INSTANCE_ID, "another consumer has joined as group_instance_id 'i'"),
        (ErrorCode.GROUP_MAX_SIZE_REACHED, "group.max.size"),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "group 'g': Not allowed"),
    ],
)
def test_a_fatal_error_contains_advice(code: ErrorCode, why: str) -> None:
    driven = Driven(group_instance_id="i")
    driven.calls()
    driven.answer(JoinGroupResponse(error_code=code))
    assert driven.member.error is not None and driven.member.error.code is code
    with pytest.raises(KafkaError, match=why):
        raise driven.member.error
    assert driven.member.next_request(driven.now) is None and driven.member.deadline() == NEVER


def test_a_static_member_that_is_fenced_has_lost_its_partitions() -> None:
    driven = Driven(group_instance_id="i")
    driven.join_and_sync(0)
    driven.heartbeat(ErrorCode.FENCED_INSTANCE_ID)
    assert driven.calls() == [lost(owned(0))]
    assert driven.member.error is not None


def test_an_unknown_assignor_and_a_member_with_invalid_metadata() -> None:
    driven = Driven(assignors=("range",))
    driven.calls()
    driven.join(assignor="mine")
    assert driven.member.error is not None
    driven = Driven()
    driven.calls()
    nonsense = [JoinGroupResponse.JoinGroupResponseMember(member_id=OTHER, metadata=b"?")]
    driven.join(leader=ME, members=nonsense)
    assert driven.member.error is not None and "cannot be read" in driven.member.error.message
    driven = Driven()
    driven.calls()
    driven.join()
    driven.answer(SyncGroupResponse(assignment=b"?"))
    assert driven.member.error is not None and "cannot be read" in driven.member.error.message


def test_a_consumer_that_does_not_poll_leaves_and_joins_again_when_it_does() -> None:
    driven = Driven(max_poll_interval=10.0, heartbeat_interval=3.0)
    driven.join_and_sync(0)
    for _ in range(3):
        driven.heartbeat()
    driven.now = driven.member.deadline()
    assert driven.now == 1010.0
    request = driven.request(LeaveGroupRequest)
    assert [(it.member_id, it.reason) for it in request.members] == [
        (ME, "the consumer has not polled for max_poll_interval")
    ]
    driven.member.response_received(request, LeaveGroupResponse(), driven.now)
    assert driven.member.next_request(driven.now + 100) is None and driven.member.deadline() == NEVER
    driven.member.polled(driven.now)
    assert driven.calls() == [lost(owned(0))]
    assert driven.request(JoinGroupRequest).member_id == ""


def test_a_static_member_sends_no_leave_request() -> None:
    driven = Driven(max_poll_interval=10.0, group_instance_id="i")
    driven.join_and_sync(0)
    assert driven.member.leave_request() is None
    driven.now += 10
    assert driven.member.next_request(driven.now) is None
    assert driven.calls() == [lost(owned(0))]


def test_a_refused_commit_has_the_effect_of_a_heartbeat_with_the_same_error() -> None:
    driven = Driven()
    driven.join_and_sync(0)
    before = driven.member.metadata
    driven.member.commit_refused(ErrorCode.REBALANCE_IN_PROGRESS, before)
    assert driven.join_and_sync(0, generation=2) == [revoked(owned(0)), assigned(owned(0))]
    # The refused commit was sent in the last generation.
    driven.member.commit_refused(ErrorCode.UNKNOWN_MEMBER_ID, before)
    assert driven.member.is_stable
    driven.member.commit_refused(ErrorCode.UNKNOWN_MEMBER_ID, driven.member.metadata)
    assert driven.calls() == [lost(owned(0))]


def test_the_last_call_gives_up_all_partitions_before_the_leave_request() -> None:
    driven = Driven()
    assert driven.member.last_call() is None and driven.member.leave_request() is None
    driven.join_and_sync(0)
    assert driven.member.last_call() == revoked(owned(0))
    assert isinstance(driven.member.leave_request(), LeaveGroupRequest)
    driven.heartbeat(ErrorCode.UNKNOWN_MEMBER_ID)
    assert driven.member.last_call() == lost(owned(0))
