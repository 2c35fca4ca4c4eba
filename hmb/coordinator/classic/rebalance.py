"""The rebalance of a classic group: a barrier at which all members wait for each other, and its time limits.

A rebalance has two halves (states.py). In the first half, the coordinator waits until all members have joined. In the
second half, it waits until the leader has sent the assignment. Each rebalance starts a new *generation*. Between two
rebalances, each member sends heartbeats. If the response to a heartbeat contains the error REBALANCE_IN_PROGRESS, the
member joins again.

A rebalance waits until all known members have joined, and until each pending member id has joined or expired. It waits
at most for the longest rebalance timeout among these members, and then the group removes each member that has not
joined. Two modules change this rule: `initial_delay` extends the first rebalance of a group, and `static_members` keeps
the membership of clients that restart.

A group has four kinds of deadlines:
    session      a member must send a request within its session timeout; otherwise the group removes the member
    pending      a client must join with a new member id within the session timeout; otherwise the id becomes invalid
    join         all members must send JoinGroup within the rebalance timeout
    sync         all members must send SyncGroup within the rebalance timeout

The session of a member that waits for a response is suspended, because its client cannot send heartbeats.

For example, a group with members A and B is Stable in generation 3. The rebalance timeout is 60 s. C joins at second 0,
and A sends JoinGroup at second 3. B has crashed, and its session ends at second 45, so the group removes B. Then all
remaining members have joined, and A and C form generation 4.

`Rebalance` contains the members, the state and the deadlines of a group. `ClassicGroup` in group.py has one such
object, and handles the requests that change the members: JoinGroup and LeaveGroup.

Source: Kafka's `GroupMetadataManager`; KIP-62.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from hmb.coordinator.classic.initial_delay import InitialDelay
from hmb.coordinator.classic.members import Call, ClassicMember, ClassicMembers
from hmb.coordinator.classic.older_clients import check_protocol
from hmb.coordinator.classic.pending_members import PendingMembers
from hmb.coordinator.classic.record import encode_group
from hmb.coordinator.classic.states import TRANSITIONS, GroupEvent
from hmb.coordinator.group import Write
from hmb.coordinator.journal.records import GroupMetadataKey, encode_key
from hmb.protocol.enums import GroupState
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.heartbeat import HeartbeatRequest
from hmb.protocol.messages.join_group import JoinGroupResponse
from hmb.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

LOGGER = logging.getLogger(__name__)
JOIN_AGAIN = "the group rebalances; join it again"
UNLOADED = "the group was deleted, or the broker stops"


class Rebalance:
    """The members, the generation, the state and the deadlines of a classic group.

    - All changes of the state follow the table `TRANSITIONS` in states.py.
    - `protocol` is the protocol of the current generation, or None if the group has no generation.
    - `unsynced` contains the ids of members that have not sent SyncGroup in this generation. `pending` contains ids
      with which no client has joined yet.
    """

    def __init__(self, group_id: str, initial_delay: int, clock: Callable[[], int]) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.state_timestamp = clock()  # ms since 1970: the time at which the state last changed
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.members = ClassicMembers()
        self.pending = PendingMembers()
        self.unsynced: set[str] = set()  # ids of members that have not sent SyncGroup in this generation
        self.responses: list[tuple[Call, JoinGroupResponse | SyncGroupResponse]] = []
        self.writes: list[Write] = []
        self._clock = clock
        self._initial_delay = InitialDelay(initial_delay)
        self._join_deadline: int | None = None
        self._sync_deadline: int | None = None

    # -- responses and records

    def queue_response(self, call: Call, response: JoinGroupResponse | SyncGroupResponse) -> None:
        self.responses.append((call, response))

    def queue_write(
        self, assignments: Mapping[str, bytes], on_stored: Callable[[KafkaError | None, int], None] | None = None
    ) -> None:
        value = encode_group(
            self.protocol_type,
            self.protocol,
            self.generation,
            self.state_timestamp,
            self.members,
            assignments,
        )
        records = [(encode_key(GroupMetadataKey(group=self.group_id)), value)]
        self.writes.append(Write(records) if on_stored is None else Write(records, on_stored))

    def _move(self, event: GroupEvent) -> None:
        self.state = TRANSITIONS.next(self.state, event)
        self.state_timestamp = self._clock()

    # -- first half of a rebalance: all members join

    def start(self, because: str, now: int) -> None:
        """If no rebalance is running, start one. Then start the next generation if all members have joined."""
        if TRANSITIONS.allows(self.state, GroupEvent.MEMBERS_CHANGED):
            self.prepare(because, now)
        else:
            self._complete_join_if_all_joined(now)

    def prepare(self, because: str, now: int) -> None:
        if self.state is GroupState.COMPLETING_REBALANCE:
            self._assign({}, now, ErrorCode.REBALANCE_IN_PROGRESS)
        self._sync_deadline = None
        LOGGER.info("group %s: rebalance after generation %d: %s", self.group_id, self.generation, because)
        timeout, is_first = self.members.rebalance_timeout, self.state is GroupState.EMPTY
        self._move(GroupEvent.MEMBERS_CHANGED)
        self._join_deadline = self._initial_delay.start(timeout, now) if is_first else now + timeout
        self._complete_join_if_all_joined(now)

    def on_join(self) -> None:
        """Record that a new member joins. If the group is in its initial delay, the delay becomes longer."""
        self._initial_delay.on_join()

    def wait_for_generation(self, member: ClassicMember, call: Call) -> None:
        """Keep the member's JoinGroup request without a response until the next generation starts."""
        if member.joining is not None:  # The member has sent the request again on another connection.
            self.queue_response(member.joining, JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        member.joining = call

    def _complete_join_if_all_joined(self, now: int) -> None:
        """Start the next generation if all members have joined and no initial delay is running."""
        all_joined = not self.pending and all(member.joining is not None for member in self.members)
        if self.state is GroupState.PREPARING_REBALANCE and not self._initial_delay.is_running and all_joined:
            self._complete_join(now)

    def _on_join_deadline(self, now: int) -> None:
        """Remove the members that have not joined in time, and start the next generation with the others.

        There are two exceptions. If the initial delay is extended, the group waits again. If all remaining members are
        static and none of them has joined, the group waits for them once more.
        """
        self._join_deadline = self._initial_delay.extend(now)
        if self._join_deadline is not None:
            return
        for member in self.members.late():
            LOGGER.info("group %s: %s did not join in time", self.group_id, member.member_id)
            self.remove(member.member_id)
        self._join_deadline = self.members.wait_for_absent(now)
        if self._join_deadline is None:
            self._complete_join(now)

    def _complete_join(self, now: int) -> None:
        """Start the next generation with the members that have joined."""
        self._join_deadline = None
        self._initial_delay.stop()
        self.generation += 1
        if self.members:
            self._begin_generation(now)
        else:
            self.protocol = None
            self._move(GroupEvent.ALL_LEFT)
            self.queue_write({})

    def _begin_generation(self, now: int) -> None:
        self.members.elect_leader()
        self.protocol = self.members.select_protocol()
        self._move(GroupEvent.ALL_JOINED)
        for member in self.members:
            if member.joining is not None:
                self.queue_response(member.joining, self.generation_for(member))
            member.joining, member.is_new = None, False
            member.extend_session(now)
        self.unsynced = set(self.members.by_id)
        self._sync_deadline = now + self.members.rebalance_timeout

    def generation_for(self, member: ClassicMember) -> JoinGroupResponse:
        """Return the JoinGroup response for a member. Only the response for the leader lists all members."""
        assert self.protocol is not None and self.members.leader_id is not None
        leads = member.member_id == self.members.leader_id
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            leader=self.members.leader_id,
            member_id=member.member_id,
            members=[
                JoinGroupResponse.JoinGroupResponseMember(
                    member_id=other.member_id,
                    group_instance_id=other.group_instance_id,
                    metadata=other.metadata(self.protocol),
                )
                for other in (self.members if leads else ())
            ],
        )

    # -- second half of a rebalance: all members receive their assignments

    def sync(self, call: Call, request: SyncGroupRequest, now: int) -> None:
        """Handle the SyncGroup request of a member.

        The request of the leader contains the assignment. The requests of the other members wait for the assignment.
        Raises KafkaError if the group rejects the request.
        """
        member = self.check(request.member_id, request.group_instance_id, request.generation_id)
        check_protocol(request, self.protocol_type, self.protocol)
        if self.state is GroupState.PREPARING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, JOIN_AGAIN)
        self.unsynced.discard(member.member_id)
        if not self.unsynced:
            self._sync_deadline = None
        if self.state is GroupState.STABLE:
            self.queue_response(call, self._assignment_for(member))
            return
        if member.syncing is not None:  # The member has sent the request again on another connection.
            self.queue_response(member.syncing, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        member.syncing = call
        if member.member_id == self.members.leader_id:
            self._store({part.member_id: bytes(part.assignment) for part in request.assignments})

    def _store(self, assignments: Mapping[str, bytes]) -> None:
        """Write the leader's assignment to the journal. The members receive the assignment after it is on disk."""
        generation = self.generation

        def on_stored(error: KafkaError | None, now: int) -> None:
            if self.state is not GroupState.COMPLETING_REBALANCE or self.generation != generation:
                return  # Another rebalance has started and has already answered the members.
            if error is not None:
                self._assign({}, now, error.code)
                self.start(f"the assignment could not be stored ({error.message})", now)
                return
            self._move(GroupEvent.ASSIGNED)
            self._assign(assignments, now)

        self.queue_write(assignments, on_stored)

    def _assign(self, assignments: Mapping[str, bytes], now: int, error: ErrorCode = ErrorCode.NONE) -> None:
        """Set the assignment of each member. Answer waiting SyncGroup requests with the assignment, or with `error`."""
        for member in self.members:
            member.assignment = assignments.get(member.member_id, b"")
            if member.syncing is not None:
                response = SyncGroupResponse(error_code=error) if error else self._assignment_for(member)
                self.queue_response(member.syncing, response)
                member.syncing = None
                member.extend_session(now)

    def _assignment_for(self, member: ClassicMember) -> SyncGroupResponse:
        return SyncGroupResponse(
            protocol_type=self.protocol_type, protocol_name=self.protocol, assignment=member.assignment
        )

    # -- heartbeats

    def heartbeat(self, request: HeartbeatRequest, now: int) -> None:
        """Extend the session of the member that sent a heartbeat.

        Raises REBALANCE_IN_PROGRESS if the member must join again. Raises another error if the group does not know the
        member or the generation.
        """
        member = self.check(request.member_id, request.group_instance_id, request.generation_id)
        member.extend_session(now)
        if self.state is GroupState.PREPARING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, JOIN_AGAIN)

    def check(self, member_id: str, group_instance_id: str | None, generation: int) -> ClassicMember:
        if self.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, UNLOADED)
        member = self.members.check(member_id, group_instance_id)
        if generation != self.generation:
            why = f"the request contains generation {generation}, but the group is in generation {self.generation}"
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, why)
        return member

    # -- removal of members

    def remove(self, member_id: str) -> None:
        """Remove the member with this id, or remove the id if it is pending."""
        self.pending.pop(member_id, None)
        self.unsynced.discard(member_id)
        member = self.members.remove(member_id)
        if member is not None:
            self.dismiss(member, ErrorCode.UNKNOWN_MEMBER_ID)

    def dismiss(self, member: ClassicMember, error: ErrorCode, member_id: str = "") -> None:
        """Answer a member's JoinGroup and SyncGroup requests with an error if they still wait for a response."""
        if member.joining is not None:
            self.queue_response(member.joining, JoinGroupResponse(error_code=error, member_id=member_id))
        if member.syncing is not None:
            self.queue_response(member.syncing, SyncGroupResponse(error_code=error))
        member.joining = member.syncing = None

    def cancel(self) -> None:
        """Dismiss all members and forget all deadlines, because the broker stops or deletes the group."""
        for member in self.members:
            self.dismiss(member, ErrorCode.NOT_COORDINATOR, member.member_id)
        self.members = ClassicMembers()
        self.pending.clear()
        self._join_deadline = self._sync_deadline = None
        self._move(GroupEvent.UNLOADED)

    # -- deadlines

    def next_deadline(self) -> int | None:
        """Return the earliest deadline (ms), or None if the group has none."""
        limits = [member.expires_at for member in self.members]
        limits += [*self.pending.values(), self._join_deadline, self._sync_deadline]
        return min((limit for limit in limits if limit is not None), default=None)

    def tick(self, now: int) -> None:
        """Act on every deadline that has passed: remove members, or complete the join."""
        for member_id in self.pending.expired(now):
            LOGGER.info("group %s: no client joined with member id %s in time", self.group_id, member_id)
            self.remove(member_id)
            self._complete_join_if_all_joined(now)
        for member in list(self.members):
            if member.member_id in self.members and (limit := member.expires_at) is not None and limit <= now:
                self._expire(member, now)
        if self._join_deadline is not None and self._join_deadline <= now:
            self._on_join_deadline(now)
        if self._sync_deadline is not None and self._sync_deadline <= now:
            self._on_sync_deadline(now)

    def _expire(self, member: ClassicMember, now: int) -> None:
        self.remove(member.member_id)
        if self.state is GroupState.PREPARING_REBALANCE:
            LOGGER.info("group %s: the session of %s ended", self.group_id, member.member_id)
            self._complete_join_if_all_joined(now)
        else:
            self.start(f"the session of {member.member_id} ended", now)

    def _on_sync_deadline(self, now: int) -> None:
        self._sync_deadline = None
        missing = sorted(self.unsynced)
        for member_id in missing:
            self.remove(member_id)
        self.prepare(f"{missing} did not send SyncGroup in time", now)
