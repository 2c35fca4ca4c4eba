"""The rebalance of a classic group. All members wait for each other, but only until a deadline.

A rebalance of a classic group has two halves (states.py). In the first half, the coordinator waits until all members
have joined. In the second half, it waits until the leader has sent the assignment. Each rebalance starts a new
*generation*. Between two rebalances, each member sends heartbeats. If the response to a heartbeat contains the error
REBALANCE_IN_PROGRESS, the member joins again.

A rebalance waits until all members have joined. It also waits for each pending member id until a client joins
with this id, or until the id expires. The longest rebalance timeout of all members limits the whole wait. After
this time, the group removes the members that have not joined. There are two special cases. The module
`initial_delay` lets the first rebalance of a group wait longer. The module `static_members` lets a client
restart without losing its membership.

Each half of a rebalance has a deadline. In the first half, all members must send JoinGroup within the rebalance timeout
(the join deadline). In the second half, all members must send SyncGroup within the same time (the sync deadline).

For example, a classic group in generation 3 has the members A and B. The rebalance timeout is 60 s. At second
0, C joins, and a rebalance begins. At second 3, A joins again, and only B is missing.

Members A and C have joined, but B has crashed. At second 45, the session of B ends, and the group removes B.
All members have now joined, so A and C form generation 4.

Three classes do the work of a classic group. `ClassicGroup` (group.py) handles all requests and decides who is
a member. It removes members that have stopped sending heartbeats. `Rebalance` (this module) decides when the
next generation starts, and what its members receive. `ClassicState` (state.py) contains the members and the
generation. The other two classes change this state.

Source: Kafka's `GroupMetadataManager`; KIP-62.
"""

from __future__ import annotations

from collections.abc import Mapping

from hmb.coordinator.classic.initial_delay import InitialDelay
from hmb.coordinator.classic.members import Call, ClassicMember
from hmb.coordinator.classic.state import ClassicState
from hmb.coordinator.classic.states import TRANSITIONS, GroupEvent
from hmb.protocol.enums import GroupState
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.join_group import JoinGroupResponse
from hmb.protocol.messages.sync_group import SyncGroupResponse

JOIN_AGAIN = "the group rebalances; join it again"


class Rebalance:
    """Moves a classic group from one generation to the next.

    - `_join_deadline` is the time (ms) by which all members must send JoinGroup. `_join_deadline` is None in all
      states of the group except PreparingRebalance.
    - `_sync_deadline` is the time (ms) by which the members of the current generation must send SyncGroup.
      `_sync_deadline` becomes None when all these members have sent SyncGroup, or when a new rebalance starts.
    - The field `joining` of a member contains a JoinGroup request that waits for its response. The field
      `syncing` of a member contains a SyncGroup request that waits for its response.
    """

    def __init__(self, state: ClassicState, initial_delay: int) -> None:
        self._state = state
        self._initial_delay = InitialDelay(initial_delay)
        self._join_deadline: int | None = None
        self._sync_deadline: int | None = None

    # -- first half of a rebalance: all members join

    def start(self, reason: str, now: int) -> None:
        """Start a rebalance if none is running. If all members have joined, start the next generation immediately."""
        if TRANSITIONS.allows(self._state.current, GroupEvent.MEMBERS_CHANGED):
            self.prepare(reason, now)
        else:
            self.complete_join_if_all_joined(now)

    def prepare(self, reason: str, now: int) -> None:
        """Start a rebalance: from now on, the group waits until all members have joined."""
        state = self._state
        if state.current is GroupState.COMPLETING_REBALANCE:
            self._assign({}, now, ErrorCode.REBALANCE_IN_PROGRESS)
        self._sync_deadline = None
        state.event_texts.append(f"rebalance after generation {state.generation}, because {reason}")
        timeout, is_first = state.members.rebalance_timeout, state.current is GroupState.EMPTY
        state.move(GroupEvent.MEMBERS_CHANGED)
        self._join_deadline = self._initial_delay.start(timeout, now) if is_first else now + timeout
        self.complete_join_if_all_joined(now)

    def on_join(self) -> None:
        """Record that a new member joins.

        A member that joins during the initial rebalance delay extends this delay, at most to the rebalance timeout.
        """
        self._initial_delay.on_join()

    def wait_for_generation(self, member: ClassicMember, call: Call) -> None:
        """Keep the member's JoinGroup request without a response until the next generation starts."""
        if member.joining is not None:  # The member has sent the request again on another connection.
            response = JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
            self._state.queue_response(member.joining, response)
        member.joining = call

    def complete_join_if_all_joined(self, now: int) -> None:
        """Start the next generation if all members have joined and the initial delay is not running."""
        state = self._state
        all_joined = not state.pending and all(member.joining is not None for member in state.members)
        if state.current is GroupState.PREPARING_REBALANCE and not self._initial_delay.is_running and all_joined:
            self._complete_join(now)

    def _on_join_deadline(self, now: int) -> None:
        """Handle the end of a wait for JoinGroup requests: wait again, or start the next generation.

        If a member has joined during the initial delay and the rebalance timeout is not over, wait again. Otherwise:

        1. Remove the dynamic members that have not joined in time. Static members, which have an instance id, stay.
        2. If at least one member has joined, or no member is left, start the next generation.
        3. If not, wait for the static members until a new deadline.
        """
        self._join_deadline = self._initial_delay.extend(now)
        if self._join_deadline is not None:
            return
        for member in self._state.members.not_yet_rejoined():
            self._state.event_texts.append(f"{member.member_id} did not join in time")
            self._state.remove(member.member_id)
        self._join_deadline = self._state.members.deadline_for_static_members(now)
        if self._join_deadline is None:
            self._complete_join(now)

    def _complete_join(self, now: int) -> None:
        self._join_deadline = None
        self._initial_delay.stop()
        self._state.generation += 1
        if self._state.members:
            self._begin_generation(now)
        else:
            self._state.protocol = None
            self._state.move(GroupEvent.ALL_LEFT)
            self._state.queue_write({})

    def _begin_generation(self, now: int) -> None:
        state = self._state
        state.members.elect_leader()
        state.protocol = state.members.select_protocol()
        state.move(GroupEvent.ALL_JOINED)
        for member in state.members:
            if member.joining is not None:
                state.queue_response(member.joining, state.join_response_for(member))
            member.joining, member.is_new, member.must_sync = None, False, True
            member.extend_session(now)
        self._sync_deadline = now + state.members.rebalance_timeout

    # -- second half of a rebalance: all members receive their assignments

    def sync(self, call: Call, member: ClassicMember, assignments: Mapping[str, bytes], now: int) -> None:
        """Handle the SyncGroup request of a member of the current generation.

        The leader's request contains the assignments of all members. The requests of the other members wait until the
        leader's request has arrived. Raises REBALANCE_IN_PROGRESS if another rebalance has begun: the member must then
        join again.
        """
        state = self._state
        if state.current is GroupState.PREPARING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, JOIN_AGAIN)
        member.must_sync = False
        if not any(other.must_sync for other in state.members):
            self._sync_deadline = None
        if state.current is GroupState.STABLE:
            state.queue_response(call, state.sync_response_for(member))
            return
        if member.syncing is not None:  # The member has sent the request again on another connection.
            state.queue_response(member.syncing, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        member.syncing = call
        if member.member_id == state.members.leader_id:
            self._store(assignments)

    def _store(self, assignments: Mapping[str, bytes]) -> None:
        """Write the leader's assignment to the journal. The members receive the assignment after it is on disk."""
        state, generation = self._state, self._state.generation

        def on_stored(error: KafkaError | None, now: int) -> None:
            if state.current is not GroupState.COMPLETING_REBALANCE or state.generation != generation:
                return  # Another rebalance has started. The coordinator has already answered the members.
            if error is not None:
                self._assign({}, now, error.code)
                self.start(f"the assignment could not be stored ({error.message})", now)
                return
            state.move(GroupEvent.ASSIGNED)
            self._assign(assignments, now)

        state.queue_write(assignments, on_stored)

    def _assign(self, assignments: Mapping[str, bytes], now: int, error: ErrorCode = ErrorCode.NONE) -> None:
        """Set the assignment of each member.

        Answer each waiting SyncGroup request with the assignment, or with `error`.
        """
        state = self._state
        for member in state.members:
            member.assignment = assignments.get(member.member_id, b"")
            if member.syncing is not None:
                response = SyncGroupResponse(error_code=error) if error else state.sync_response_for(member)
                state.queue_response(member.syncing, response)
                member.syncing = None
                member.extend_session(now)

    # -- deadlines

    def next_deadline(self) -> int | None:
        """Return the time (ms) of the deadline for JoinGroup or SyncGroup, or None if no deadline exists."""
        limits = (self._join_deadline, self._sync_deadline)
        return min((limit for limit in limits if limit is not None), default=None)

    def tick(self, now: int) -> None:
        """Act on each deadline that has passed.

        If the deadline for JoinGroup has passed, start the next generation. If the deadline for SyncGroup has passed,
        start the next rebalance.
        """
        if self._join_deadline is not None and self._join_deadline <= now:
            self._on_join_deadline(now)
        if self._sync_deadline is not None and self._sync_deadline <= now:
            self._on_sync_deadline(now)

    def _on_sync_deadline(self, now: int) -> None:
        self._sync_deadline = None
        missing = sorted(member.member_id for member in self._state.members if member.must_sync)
        for member_id in missing:
            self._state.remove(member_id)
        self.prepare(f"{missing} did not send SyncGroup in time", now)

    def cancel(self) -> None:
        """Remove the deadlines for JoinGroup and for SyncGroup, because the group was deleted or the broker stops."""
        self._join_deadline = self._sync_deadline = None
