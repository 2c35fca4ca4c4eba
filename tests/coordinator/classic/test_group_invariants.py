"""Tests of invariants of a classic group. At random, its clients stop or restart, and its writes are slow or fail.

The clients behave as real consumers do. They send heartbeats, join again after an error, and send SyncGroup after each
JoinGroup. At random, a client stops sending requests, sends a request twice, or leaves.

Only a client that has stopped or left may receive the errors UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION and
FENCED_INSTANCE_ID.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hmb.coordinator.classic.members import Call
from hmb.protocol.enums import GroupState
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.join_group import JoinGroupResponse
from tests.coordinator.classic.group_driver import DISK_FULL, GroupDriver
from tests.coordinator.settings import group_settings

FENCED = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID)
numbers = st.integers(0, 100)


@dataclass(eq=False)
class Client:
    """A consumer with its member id, its generation and its waiting requests."""

    name: str
    instance: str | None
    session: int
    member_id: str = ""
    generation: int = 0
    joining: Call | None = None
    syncing: Call | None = None
    is_silent: bool = False  # whether the client has stopped sending requests
    must_join: bool = True


class Groups(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.driver = GroupDriver(group_settings(initial_delay=500, max_size=6))
        self.clients: list[Client] = []
        self.generations: dict[int, tuple[str, str | None]] = {}  # generation -> (leader, protocol)
        self.assigned: dict[tuple[int, str], bytes] = {}
        self.newest = 0
        self.calls: list[Call] = []

    def pick(self, number: int) -> Client:
        return self.clients[number % len(self.clients)]

    def live(self) -> list[Client]:
        return [client for client in self.clients if not client.is_silent]

    # -- actions of clients

    @precondition(lambda self: len(self.clients) < 8)
    @rule(is_static=st.booleans(), session=st.sampled_from([6_000, 60_000]))
    def comes(self, is_static: bool, session: int) -> None:
        name = f"c{len(self.clients)}"
        self.clients.append(Client(name, f"i{len(self.clients)}" if is_static else None, session))

    @precondition(lambda self: self.clients)
    @rule(number=numbers)
    def falls_silent(self, number: int) -> None:
        self.pick(number).is_silent = True

    @precondition(lambda self: self.clients)
    @rule(number=numbers)
    def starts_again(self, number: int) -> None:
        """Restart a client that has stopped sending requests. If the client is static, it keeps its instance id."""
        client = self.pick(number)
        if client.is_silent:
            self.clients[self.clients.index(client)] = Client(client.name, client.instance, client.session)

    @precondition(lambda self: self.clients)
    @rule(number=numbers)
    def leaves(self, number: int) -> None:
        client = self.pick(number)
        if client.member_id and not client.is_silent and client.joining is None:
            self.driver.leave(client.member_id)
            client.is_silent = True

    @precondition(lambda self: self.clients)
    @rule(number=numbers)
    def asks_again_on_another_connection(self, number: int) -> None:
        client = self.pick(number)
        if client.joining is not None and client.member_id and not client.is_silent:
            client.joining = self._join(client)
            self._deliver()

    @rule(seconds=st.integers(1, 12))
    def time_passes(self, seconds: int) -> None:
        """Let some seconds pass. In each second, the live clients send heartbeats, and join again after an error."""
        for _ in range(seconds):
            self._act()
            self.driver.wait(1_000)
            self._act()

    @precondition(lambda self: not self.driver.holds)
    @rule()
    def the_disk_is_slow(self) -> None:
        self.driver.holds = True

    @precondition(lambda self: self.driver.holds)
    @rule(fails=st.booleans())
    def the_disk_is_done(self, fails: bool) -> None:
        self.driver.holds = False
        self.driver.write(DISK_FULL if fails else None)
        self._deliver()

    # -- requests and responses of a client

    def _act(self) -> None:
        for client in self.live():
            self._deliver()
            if client.joining is None and client.must_join:
                client.must_join = False
                client.joining = self._join(client)
            elif client.joining is None and client.member_id and client.syncing is None:
                code = self.driver.heartbeat(client.member_id, client.generation, client.instance)
                self._obey(client, code)
        self._deliver()

    def _join(self, client: Client) -> Call:
        call = self.driver.join(
            client.name, client.member_id, instance=client.instance, session=client.session, rebalance=20_000
        )
        self.calls.append(call)
        return call

    def _deliver(self) -> None:
        """Deliver all responses to the clients, until the clients send no further requests."""
        while joined := [client for client in self.clients if self._take(client)]:
            for client in joined:
                if client.generation and client.syncing is None and not client.must_join and not client.is_silent:
                    self._sync(client)

    def _take(self, client: Client) -> bool:
        """Deliver the responses of one client. Return whether the client has joined the group."""
        if client.syncing in self.driver.answers:
            answer = self.driver.synced(client.syncing)
            client.syncing = None
            if not answer.error_code:
                assert answer.assignment == self.assigned[client.generation, client.instance or client.member_id]
            self._obey(client, ErrorCode(answer.error_code))
        if client.joining not in self.driver.answers:
            return False
        joined = self.driver.joined(client.joining)
        client.joining = None
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id, client.must_join = joined.member_id, True
            return False
        self._obey(client, ErrorCode(joined.error_code))
        if joined.error_code:
            return False
        client.member_id, client.generation, client.syncing = joined.member_id, joined.generation_id, None
        self._check_generation(joined)
        return True

    def _sync(self, client: Client) -> None:
        leader, _ = self.generations[client.generation]
        parts: dict[str, bytes] = {}
        if leader == client.member_id and self.driver.group.state.current is GroupState.COMPLETING_REBALANCE:
            for member in self.driver.group.state.members:
                part = parts[member.member_id] = f"{client.generation} {member.member_id}".encode()
                self.assigned[client.generation, member.group_instance_id or member.member_id] = part
        client.syncing = self.driver.sync(client.member_id, client.generation, parts, instance=client.instance)
        self.calls.append(client.syncing)

    def _obey(self, client: Client, code: ErrorCode) -> None:
        if code:
            client.must_join = True
        if code in FENCED:
            assert client.is_silent, f"{client} received {code.name}"
        if code is ErrorCode.GROUP_MAX_SIZE_REACHED:
            client.is_silent = True

    # -- invariants

    def _check_generation(self, joined: JoinGroupResponse) -> None:
        agreed = joined.leader, joined.protocol_name
        assert self.generations.setdefault(joined.generation_id, agreed)[1] == joined.protocol_name
        # A static leader gets a new member id when it restarts. The generation stays the same, so store the new id.
        self.generations[joined.generation_id] = agreed

    @invariant()
    def generations_grow(self) -> None:
        assert self.driver.group.state.generation >= self.newest
        self.newest = self.driver.group.state.generation

    @invariant()
    def the_members_are_consistent(self) -> None:
        group = self.driver.group
        members = group.state.members
        assert (members.leader_id in members) == bool(members)
        assert (members.leader_id is None) == (not members)
        assert {each: members.by_id[holder].group_instance_id for each, holder in members.instances.items()} == {
            each: each for each in members.instances
        }
        assert {m.group_instance_id for m in members if m.is_static} == set(members.instances)
        assert not group.state.pending.keys() & members.by_id.keys()
        assert bool(members) == (group.state.current is not GroupState.EMPTY)

    @invariant()
    def a_waiting_client_has_a_deadline_or_a_pending_write(self) -> None:
        waits = any(client.joining or client.syncing for client in self.live())
        assert not waits or self.driver.group.next_deadline() is not None or self.driver.held

    def teardown(self) -> None:
        """Stop all clients. Check that the group becomes Empty and that no request waits."""
        self.driver.holds = False
        self.driver.write()
        self.driver.wait(24 * 60 * 60 * 1000)
        group = self.driver.group
        assert (group.state.current, group.next_deadline(), group.state.pending) == (GroupState.EMPTY, None, {})
        assert all(call in self.driver.answers for call in self.calls)


TestGroups = Groups.TestCase
TestGroups.settings = settings(
    max_examples=50, stateful_step_count=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
