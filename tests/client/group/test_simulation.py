"""A simulation of group members and their coordinator. Their state machines exchange messages in random order.

The simulation has no threads, no sockets and no clock. Each step is chosen at random: for example, a member sends a
request, a response is lost, or time passes. After each step, no partition may have two owners among the members that
the coordinator knows. Some time after the last failure, each partition must have an owner.

Each call to a member's listener reports partitions that the member receives or gives up. No call may report that the
member receives a partition that it already owns. No call may report that the member gives up a partition that it does
not own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hmb.client.group.classic_member import ClassicGroupMember
from hmb.client.group.consumer_member import ConsumerGroupMember
from hmb.client.group.member import GroupMember, ListenerCall, ListenerMethod, TopicLookup, TopicLookupResult
from hmb.coordinator.classic.group import ClassicGroup
from hmb.coordinator.classic.members import Call as WaitingCall
from hmb.coordinator.consumer.group import ConsumerGroup
from hmb.protocol.errors import KafkaError
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from hmb.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from hmb.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from hmb.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from hmb.protocol.schema import Request
from hmb.protocol.topics import TopicPartition
from tests.client.group.members import member_settings
from tests.coordinator.consumer.consumer_driver import Topics
from tests.coordinator.settings import consumer_group_settings, group_settings

MEMBERS = 4
SESSION, HEARTBEAT = 10.0, 3.0  # seconds
TIMES: dict[str, Any] = {"session_timeout": SESSION, "heartbeat_interval": HEARTBEAT, "max_poll_interval": 20.0}
FOREVER = 400  # rounds after which all members must be stable


class Coordinator(Protocol):
    now: int  # ms
    topics: Topics

    def ask(self, request: Request) -> Any:
        """Return the coordinator's response. If the coordinator answers later, return a WaitingCall."""

    def answer_to(self, call: WaitingCall) -> Any | None: ...

    def pass_time(self) -> None: ...

    def known(self) -> Iterable[str]:
        """Return the ids of the members that the coordinator knows."""


class ClassicCoordinator:
    def __init__(self) -> None:
        self.now = 1_000
        self.topics = Topics(a=4)
        self._group = ClassicGroup("g", group_settings(initial_delay=0), lambda: self.now)
        self._answers: dict[WaitingCall, Any] = {}

    def ask(self, request: Request) -> Any:
        call = WaitingCall(client_id="c", version=9)
        try:
            match request:
                case JoinGroupRequest():
                    failed: Any = JoinGroupResponse
                    self._group.join(call, request, self.now)
                    return call
                case SyncGroupRequest():
                    failed = SyncGroupResponse
                    self._group.sync(call, request, self.now)
                    return call
                case HeartbeatRequest():
                    failed = HeartbeatResponse
                    self._group.heartbeat(request, self.now)
                    return HeartbeatResponse()
                case LeaveGroupRequest():
                    self._group.leave(request.members, self.now)
                    return LeaveGroupResponse()
        except KafkaError as error:
            return failed(error_code=error.code)
        finally:
            self.pass_time()
        raise AssertionError(request)

    def answer_to(self, call: WaitingCall) -> Any | None:
        return self._answers.get(call)

    def pass_time(self) -> None:
        self._group.tick(self.now)
        while self._group.responses or self._group.writes:
            self._answers.update(self._group.responses)
            self._group.responses.clear()
            writes = self._group.writes.copy()
            self._group.writes.clear()
            for write in writes:
                write.on_stored(None, self.now)

    def known(self) -> Iterable[str]:
        return self._group.state.members.by_id


class ConsumerCoordinator:
    def __init__(self) -> None:
        self.now = 1_000
        self.topics = Topics(a=4)
        times = consumer_group_settings(
            session_timeout=int(SESSION * 1000), heartbeat_interval=int(HEARTBEAT * 1000), assignment_interval=0
        )
        self._group = ConsumerGroup("g", lambda group_id: times, self.topics, lambda: self.now)

    def ask(self, request: Request) -> Any:
        assert isinstance(request, ConsumerGroupHeartbeatRequest)
        try:
            return self._group.heartbeat(request, "c", "/host", self.now)
        except KafkaError as error:
            return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
        finally:
            self.pass_time()

    def answer_to(self, call: WaitingCall) -> Any | None:
        raise AssertionError("in a KIP-848 group, no request waits for its response")

    def pass_time(self) -> None:
        self._group.tick(self.now)
        self._group.writes.clear()

    def known(self) -> Iterable[str]:
        return self._group.state.members


@dataclass
class Client:
    """A simulated client: a group member, its rebalance listener, and at most one request in flight."""

    member: GroupMember
    asked: Request | TopicLookup | None = None
    answer: Any = None  # the response to the request in flight, or a WaitingCall until it is known
    call: ListenerCall | None = None  # the call that the listener has begun and not ended
    owned: frozenset[TopicPartition] = frozenset()  # the partitions that the member received and has not given up
    calls_made: list[ListenerCall] = field(default_factory=list)

    def tell(self, call: ListenerCall) -> None:
        self.calls_made.append(call)
        if call.method is ListenerMethod.ON_ASSIGNED:
            assert not call.partitions & self.owned, "what it has is assigned again"
            self.owned |= call.partitions
        else:
            assert call.partitions <= self.owned, "what it does not have is taken away"
            self.owned -= call.partitions


class World:
    def __init__(self, kind: dict[str, Any]) -> None:
        is_new = kind.get("group_protocol") == "consumer"
        self._kind, self._make = kind, ConsumerGroupMember if is_new else ClassicGroupMember
        self.coordinator: Coordinator = ConsumerCoordinator() if is_new else ClassicCoordinator()
        self.clients: dict[int, Client] = {}

    @property
    def now(self) -> float:
        return self.coordinator.now / 1000

    # -- steps; `number` chooses a client

    def start(self, number: int) -> None:
        if number not in self.clients:
            client = Client(self._make(member_settings(**TIMES, **self._kind)))
            client.member.subscribe(["a", "b"])
            self.clients[number] = client

    def poll(self, number: int) -> None:
        """Poll one member. If the member wants to call its listener, start this call.

        A later step, `called`, finishes the call. Other steps can happen before the call is finished.
        """
        if client := self.clients.get(number):
            client.member.polled(self.now)
            if client.call is None:
                client.call = client.member.next_call()

    def called(self, number: int) -> None:
        if (client := self.clients.get(number)) and client.call is not None:
            client.tell(client.call)
            client.member.call_finished(client.call)
            client.call = None

    def send(self, number: int) -> None:
        client = self.clients.get(number)
        if client is None or client.asked is not None:
            return
        client.asked = client.member.next_request(self.now)
        if isinstance(client.asked, TopicLookup):
            topics = self.coordinator.topics
            counts = {name: it.partitions for name in client.asked.names if (it := topics.by_name(name))}
            names = {topic_id: it.name for topic_id in client.asked.ids if (it := topics.by_id(topic_id))}
            client.answer = TopicLookupResult(counts, names)
        elif client.asked is not None:
            client.answer = self.coordinator.ask(client.asked)

    def receive(self, number: int) -> None:
        client = self.clients.get(number)
        if client is None or client.asked is None:
            return
        answer = client.answer
        if isinstance(answer, WaitingCall):
            answer = self.coordinator.answer_to(answer)
        if answer is not None:
            asked, client.asked, client.answer = client.asked, None, None
            client.member.response_received(asked, answer, self.now)

    def lose_answer(self, number: int) -> None:
        if (client := self.clients.get(number)) and client.asked is not None:
            client.asked = client.answer = None
            client.member.request_failed(self.now)

    def lose_request(self, number: int) -> None:
        client = self.clients.get(number)
        if client is not None and client.asked is None and client.member.next_request(self.now) is not None:
            client.member.request_failed(self.now)

    def advance(self, number: int) -> None:
        """Run four steps of one client: `receive`, `poll`, `called` and `send`.

        Without this combined step, a rebalance would take more steps than a random script contains.
        """
        for step in (self.receive, self.poll, self.called, self.send):
            step(number)

    def kill(self, number: int) -> None:
        self.clients.pop(number, None)

    def close(self, number: int) -> None:
        if client := self.clients.pop(number, None):
            call = client.member.last_call()
            if call is not None and client.call is None:
                client.tell(call)
            if (goodbye := client.member.leave_request()) is not None:
                self.coordinator.ask(goodbye)

    def wait(self, number: int) -> None:
        self.coordinator.now += (50, 1_000, 4_000, 11_000)[number]
        self.coordinator.pass_time()

    def grow(self, number: int) -> None:
        self.coordinator.topics.make("ab"[number % 2], 2 + 2 * number)

    # -- invariants

    def check(self) -> None:
        known = set(self.coordinator.known())
        owned = [
            partition
            for client in self.clients.values()
            if client.member.metadata.member_id in known
            for partition in client.owned
        ]
        assert len(owned) == len(set(owned)), "two members own the same partition"
        for client in self.clients.values():
            assert client.member.error is None
            assert client.owned == client.member.assignment

    def settle(self, number: int = 0) -> None:
        """Exchange messages, without losing one, until all members are stable."""
        for _ in range(FOREVER):
            self.wait(1)
            for number in list(self.clients):
                for _ in range(8):
                    for step in (self.poll, self.called, self.send, self.receive):
                        step(number)
                self.check()
            if self.is_shared_out():
                return
        raise AssertionError("the group does not become stable")

    def is_shared_out(self) -> bool:
        every = [
            TopicPartition(name, number)
            for name in ("a", "b")
            if (topic := self.coordinator.topics.by_name(name))
            for number in range(topic.partitions)
        ]
        owned = [partition for client in self.clients.values() for partition in client.owned]
        at_rest = all(client.member.is_stable and client.call is None for client in self.clients.values())
        return not self.clients or (at_rest and sorted(owned) == every)


STEPS = {
    "start": World.start,
    "poll": World.poll,
    "called": World.called,
    "send": World.send,
    "receive": World.receive,
    "advance": World.advance,
    "lose_answer": World.lose_answer,
    "lose_request": World.lose_request,
    "kill": World.kill,
    "close": World.close,
    "wait": World.wait,
    "grow": World.grow,
    "settle": World.settle,
}
# Steps without a failure are more frequent than failures. Scripts are long, because some defects appear only after many
# steps.
OFTEN = [*["advance"] * 12, *["wait"] * 3, "start", "lose_answer", *STEPS]
SCRIPTS = st.lists(st.tuples(st.sampled_from(OFTEN), st.integers(0, MEMBERS - 1)), min_size=40, max_size=150)
KINDS: list[dict[str, Any]] = [
    {"assignors": ("range",), "metadata_max_age": 5.0},
    {"assignors": ("sticky",), "metadata_max_age": 5.0},
    {"assignors": ("cooperative-sticky",), "metadata_max_age": 5.0},
    {"group_protocol": "consumer"},
]


@pytest.mark.parametrize("kind", KINDS, ids=["range", "sticky", "cooperative-sticky", "consumer"])
@given(script=SCRIPTS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_partition_ever_has_two_owners_and_in_the_end_each_has_one(
    kind: dict[str, Any], script: list[tuple[str, int]]
) -> None:
    world = World(kind)
    world.start(0)
    world.start(1)
    world.settle()
    for step, number in script:
        STEPS[step](world, number)
        world.check()
    world.settle()
