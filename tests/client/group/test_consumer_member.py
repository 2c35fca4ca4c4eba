"""Tests of a member of a KIP-848 group, step by step: its heartbeats and the calls of its listener."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from hmb.client.group.consumer_member import ConsumerGroupMember
from hmb.client.group.member import NEVER, ListenerCall, TopicLookup, TopicLookupResult
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from hmb.protocol.topics import TopicPartition
from tests.client.group.listener_calls import assigned, lost, revoked
from tests.client.group.members import member_settings

A, B = UUID(int=0xA), UUID(int=0xB)
NAMES = {A: "a", B: "b"}
Assignment = ConsumerGroupHeartbeatResponse.Assignment


def owned(*numbers: int, topic: str = "a") -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, number) for number in numbers)


class Driven:
    """A group member without threads. The test calls the member's methods directly, and sets the time."""

    def __init__(self, *topics: str, **settings: Any) -> None:
        self.member = ConsumerGroupMember(member_settings(group_protocol="consumer", **settings))
        self.now = 1000.0
        self.member.polled(self.now)
        self.member.subscribe(topics or ("a",))

    def heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        """Wait until the next heartbeat is due, and return it."""
        self.now = max(self.now, self.member.deadline())
        request = self.member.next_request(self.now)
        assert isinstance(request, ConsumerGroupHeartbeatRequest), request
        return request

    def answer(self, epoch: int, *numbers: int, error: int = 0, topics: dict[UUID, list[int]] | None = None) -> None:
        """Answer the next heartbeat.

        The response assigns the partitions `numbers` of topic "a", or the partitions in the dict `topics`. If the test
        passes neither of them, the response contains no assignment.
        """
        request = self.heartbeat()
        topics = topics if topics is not None else ({A: list(numbers)} if numbers else None)
        assignment = None
        if topics is not None:
            parts = [Assignment.TopicPartitions(topic_id=it, partitions=each) for it, each in topics.items()]
            assignment = Assignment(topic_partitions=parts)
        response = ConsumerGroupHeartbeatResponse(
            error_code=error, member_epoch=epoch, heartbeat_interval_ms=5000, assignment=assignment
        )
        self.member.response_received(request, response, self.now)

    def look_up(self) -> None:
        lookup = self.member.next_request(self.now)
        assert isinstance(lookup, TopicLookup), lookup
        names = {topic_id: NAMES[topic_id] for topic_id in lookup.ids if topic_id in NAMES}
        self.member.response_received(lookup, TopicLookupResult({}, names), self.now)

    def calls(self) -> list[ListenerCall]:
        calls = []
        while (call := self.member.next_call()) is not None:
            self.member.call_finished(call)
            calls.append(call)
        return calls

    def join_and_reconcile(self, *numbers: int, epoch: int = 1) -> list[ListenerCall]:
        """Join, apply the assignment, and return the calls of the listener."""
        self.answer(epoch, *numbers)
        if isinstance(self.member.next_request(self.now), TopicLookup):
            self.look_up()
        calls = self.calls()
        self.answer(epoch)
        return calls


def owned_in(request: ConsumerGroupHeartbeatRequest) -> dict[UUID, list[int]] | None:
    """Return the owned partitions that a heartbeat contains, or None if it contains none."""
    topics = request.topic_partitions
    return None if topics is None else {it.topic_id: it.partitions for it in topics}


def test_a_member_sends_no_request_before_it_subscribes() -> None:
    member = ConsumerGroupMember(member_settings())
    member.polled(0)
    assert member.next_call() is None and member.next_request(0) is None and member.is_stable
    assert member.deadline() == NEVER


def test_a_member_joins_with_its_own_id_and_sends_all_fields() -> None:
    driven = Driven("b", "a", remote_assignor="range", max_poll_interval=11)
    request = driven.heartbeat()
    assert len(request.member_id) == 36
    assert (request.member_epoch, request.subscribed_topic_names) == (0, ["a", "b"])
    assert (request.server_assignor, request.rebalance_timeout_ms, owned_in(request)) == ("range", 11_000, {})


def test_a_member_applies_its_assignment_and_reports_it_at_once() -> None:
    driven = Driven()
    driven.answer(3, 0, 2)
    assert driven.member.next_call() is None  # The topic names are not known yet.
    driven.look_up()
    assert driven.calls() == [assigned(owned(0, 2))]
    assert driven.member.is_stable and driven.member.metadata.generation_id == 3
    request = driven.heartbeat()
    assert driven.now == 1000.0
    assert (request.member_epoch, owned_in(request)) == (3, {A: [0, 2]})
    assert request.subscribed_topic_names is None and request.rebalance_timeout_ms == -1


def test_later_heartbeats_contain_only_the_member_and_its_epoch() -> None:
    driven = Driven()
    driven.join_and_reconcile(0)
    assert driven.member.next_request(driven.now) is None
    request = driven.heartbeat()
    assert driven.now == 1005.0 and owned_in(request) is None and request.subscribed_topic_names is None


def test_a_member_gives_up_partitions_before_it_gets_new_ones() -> None:
    driven = Driven()
    driven.join_and_reconcile(1, 2)
    driven.answer(2, 0, 1)
    heartbeat = driven.heartbeat()  # The consumer is working on its records.
    assert owned_in(heartbeat) is None
    assert driven.calls() == [revoked(owned(2)), assigned(owned(0))]
    assert owned_in(driven.heartbeat()) == {A: [0, 1]}


def test_an_assignment_that_arrives_while_the_listener_is_running() -> None:
    driven = Driven()
    driven.join_and_reconcile(0, 1)
    driven.answer(2, 0)
    call = driven.member.next_call()
    assert call == revoked(owned(1))
    driven.answer(3, 0, 2)
    driven.member.call_finished(call)
    assert driven.calls() == [assigned(owned(2))]
    assert owned_in(driven.heartbeat()) == {A: [0, 2]}


def test_partitions_of_an_unknown_topic_id_are_assigned_when_its_name_is_known() -> None:
    driven = Driven("a", "c")
    unknown = UUID(int=0xC)
    driven.answer(1, topics={A: [0], unknown: [0]})
    driven.look_up()
    assert driven.calls() == [assigned(owned(0))] and not driven.member.is_stable
    driven.now = driven.member.deadline()
    lookup = driven.member.next_request(driven.now)
    assert lookup == TopicLookup(ids=frozenset({unknown}))
    driven.member.response_received(lookup, TopicLookupResult({}, {unknown: "c"}), driven.now)
    assert driven.calls() == [assigned(owned(0, topic="c"))]
    assert owned_in(driven.heartbeat()) == {A: [0], unknown: [0]}


def test_the_listener_is_called_for_an_empty_assignment_too() -> None:
    driven = Driven()
    driven.answer(1, topics={})
    assert driven.calls() == [assigned(owned())] and driven.member.is_stable


def test_a_change_of_the_subscription_is_sent_at_once() -> None:
    driven = Driven()
    driven.join_and_reconcile(0)
    driven.member.subscribe(["b"])
    request = driven.heartbeat()
    assert driven.now == 1000.0 and request.subscribed_topic_names == ["b"]


@pytest.mark.parametrize("code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_loses_all_partitions_and_joins_again(code: ErrorCode) -> None:
    driven = Driven()
    driven.join_and_reconcile(0, 1)
    before = driven.member.metadata.member_id
    driven.answer(0, error=code)
    assert driven.member.next_request(driven.now) is None  # The listener must be called first.
    assert driven.calls() == [lost(owned(0, 1))]
    request = driven.heartbeat()
    assert (request.member_epoch, request.member_id, owned_in(request)) == (0, before, {})
    assert driven.join_and_reconcile(1, epoch=4) == [assigned(owned(1))]


def test_a_heartbeat_without_a_response_is_sent_again_in_full() -> None:
    driven = Driven()
    driven.join_and_reconcile(0)
    driven.heartbeat()
    driven.member.request_failed(driven.now)
    assert driven.member.next_request(driven.now) is None
    request = driven.heartbeat()
    sent = request.subscribed_topic_names, owned_in(request), request.rebalance_timeout_ms
    assert sent == (["a"], {A: [0]}, 300_000)


def test_a_lost_response_is_requested_again_also_while_it_reconciles() -> None:
    """If the response to a heartbeat is lost, the member's next heartbeat contains all fields.

    After this heartbeat, the coordinator sends the lost assignment again. It would not do so after a heartbeat without
    these fields. In this test, the response is lost while the member is still changing its partitions to match an
    earlier assignment.
    """
    driven = Driven("a", "b")
    driven.join_and_reconcile(0)
    driven.answer(2, topics={B: [0]})
    driven.look_up()
    driven.heartbeat()  # The response to this heartbeat contains another assignment, and is lost.
    driven.member.request_failed(driven.now)
    request = driven.heartbeat()
    assert (request.subscribed_topic_names, owned_in(request), request.rebalance_timeout_ms) == (
        ["a", "b"],
        {A: [0]},
        300_000,
    )


def test_a_coordinator_that_is_not_ready_is_asked_again() -> None:
    driven = Driven()
    driven.answer(0, error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert driven.member.next_request(driven.now) is None and driven.member.error is None
    assert driven.join_and_reconcile(0) == [assigned(owned(0))]


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (ErrorCode.UNSUPPORTED_ASSIGNOR, "the broker has no assignor 'mine'"),
        (ErrorCode.UNRELEASED_INSTANCE_ID, "another consumer is a member as group_instance_id 'i'"),
        (ErrorCode.GROUP_MAX_SIZE_REACHED, "it is full"),
    ],
)
def test_a_fatal_error_contains_advice(code: ErrorCode, why: str) -> None:
    driven = Driven(remote_assignor="mine", group_instance_id="i")
    driven.answer(0, error=code)
    assert driven.member.error is not None and why in driven.member.error.message
    assert driven.member.next_request(driven.now) is None and driven.member.deadline() == NEVER


def test_after_a_fatal_error_no_partitions_are_applied() -> None:
    driven = Driven()
    driven.join_and_reconcile(0)
    driven.answer(2, 0, 1)
    driven.answer(0, error=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert driven.calls() == [lost(owned(0))]


def test_a_consumer_that_does_not_poll_leaves_and_joins_again_when_it_does() -> None:
    for instance_id, epoch in ((None, -1), ("i", -2)):
        driven = Driven(max_poll_interval=7.0, group_instance_id=instance_id)
        driven.join_and_reconcile(0)
        driven.answer(1)
        request = driven.heartbeat()
        assert (driven.now, request.member_epoch) == (1007.0, epoch)
        driven.member.response_received(request, ConsumerGroupHeartbeatResponse(member_epoch=epoch), driven.now)
        assert driven.member.next_request(driven.now + 100) is None and driven.member.deadline() == NEVER
        driven.member.polled(driven.now)
        assert driven.calls() == [lost(owned(0))]
        assert driven.heartbeat().member_epoch == 0


def test_the_last_call_gives_up_all_partitions_before_the_leave_request() -> None:
    driven = Driven()
    assert driven.member.last_call() is None and driven.member.leave_request() is None
    driven.join_and_reconcile(0)
    assert driven.member.last_call() == revoked(owned(0))
    goodbye = driven.member.leave_request()
    assert isinstance(goodbye, ConsumerGroupHeartbeatRequest) and goodbye.member_epoch == -1
    driven.member.commit_refused(ErrorCode.UNKNOWN_MEMBER_ID, driven.member.metadata)
    assert driven.member.last_call() == lost(owned(0))


def test_a_topic_that_was_created_again_is_sent_with_its_new_id() -> None:
    driven = Driven()
    driven.join_and_reconcile(0)
    anew = UUID(int=0xAA)
    driven.answer(2, topics={anew: [0]})
    lookup = driven.member.next_request(driven.now)
    assert lookup == TopicLookup(ids=frozenset({anew}))
    driven.member.response_received(lookup, TopicLookupResult({}, {anew: "a"}), driven.now)
    driven.calls()
    driven.heartbeat()
    driven.member.request_failed(driven.now)
    assert owned_in(driven.heartbeat()) == {anew: [0]}
