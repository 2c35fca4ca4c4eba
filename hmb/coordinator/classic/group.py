"""One classic group and its requests: a state machine without threads, clocks or sockets.

A *step* is a request (`join`, `sync`, `heartbeat`, `leave`, `check_commit`) or the passing of time (`tick`). A step
changes the state of the group. The caller (shared_group.py) then carries out the effects of the step:

- `answers` contains waiting requests, each with its response.
- `writes` contains records for the journal. The caller runs `Write.then` after the records are on disk. That step
  produces the responses that must not be sent earlier.
- `next_deadline()` returns the time at which the caller must call `tick`.

A member passes through the protocol in this order:

1. A client sends JoinGroup without a member id. The response is MEMBER_ID_REQUIRED with a new id (KIP-394). The id is
   *pending* until the client joins with it.
2. The client sends JoinGroup with the id. When all members have joined, each response contains the generation, the
   protocol and the leader. The response to the leader also contains the metadata of all members.
3. The leader assigns the partitions and sends the assignment with SyncGroup. The other members send SyncGroup, too, and
   wait. Each response contains the assignment of one member.
4. Heartbeats keep the session of the member alive. The error REBALANCE_IN_PROGRESS asks the member to join again.

Cooperative rebalancing (KIP-429) uses the same protocol. The members keep their partitions and rebalance twice.

For example, a consumer with client id "app" joins an empty group. The first response contains the member id
"app-6f1c...". After an initial delay of 3 s the second response contains generation 1.

Invariant: during a rebalance, a member with a live session never receives UNKNOWN_MEMBER_ID. The coordinator removes a
member when it leaves, when its session ends, or when it misses a rebalance.

`now` is a time in ms of a clock that never jumps. `clock` returns ms since 1970 for the record of the group.

Source: Kafka's `GroupMetadataManager` (classicGroup...); KIP-62, KIP-345, KIP-394, KIP-559, KIP-814.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self
from uuid import uuid4

from hmb.coordinator.classic.members import Call, ClassicMember
from hmb.coordinator.classic.rebalance import NEW_MEMBER_TIMEOUT, ClassicRebalance, GroupSettings
from hmb.coordinator.classic.record import decode_members
from hmb.coordinator.classic.states import GroupState
from hmb.coordinator.group import Commit
from hmb.coordinator.journal.records import GroupMetadataKey, GroupMetadataValue, KeyAndValue, encode_key
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.describe_groups import DescribeGroupsResponse
from hmb.protocol.messages.heartbeat import HeartbeatRequest
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from hmb.protocol.messages.leave_group import LeaveGroupRequest
from hmb.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

FIRST_VERSION_OF_REQUIRED_IDS = 4
FIRST_VERSION_OF_SKIPPED_ASSIGNMENT = JoinGroupResponse.first_version("skip_assignment")
LONGEST_PREFIX = 255  # characters of the client id at the start of a member id, whose length an int16 limits
MOST_PENDING = 1000  # pending member ids of a group; a client can request any number of them
LONGEST_REASON = 255  # characters, the limit of Kafka's clients

Protocols = Sequence[tuple[str, bytes]]
MemberIdentity = LeaveGroupRequest.MemberIdentity
DescribedGroup = DescribeGroupsResponse.DescribedGroup


class ClassicGroup(ClassicRebalance):
    """One classic group. This class handles the requests, and its base class the rebalance."""

    @classmethod
    def restore(
        cls, group_id: str, value: GroupMetadataValue, settings: GroupSettings, clock: Callable[[], int]
    ) -> Self:
        """Return the group that a record of the journal describes."""
        group = cls(group_id, settings, clock)
        group.members = decode_members(value)
        group.state = GroupState.STABLE if group.members else GroupState.EMPTY
        group.generation = value.generation
        group.protocol_type, group.protocol = value.protocol_type or None, value.protocol
        group.state_timestamp = value.current_state_timestamp
        return group

    def resume(self, now: int) -> None:
        """Start the sessions of the restored members. Each member has its session timeout to send a request."""
        for member in self.members:
            if member.deadline is None:
                member.deadline = now + member.session_timeout
        if len(self.members) > self._settings.max_size:
            self._prepare(f"the group has {len(self.members)} members, more than group.max.size", now)

    # -- JoinGroup

    def join(self, call: Call, request: JoinGroupRequest, now: int) -> None:
        """Add a member, or let a member join again. Raises KafkaError if the request is rejected at once."""
        if self.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        protocols = [(protocol.name, bytes(protocol.metadata)) for protocol in request.protocols]
        if not self._has_room_for(request.member_id):
            self._remove(request.member_id)
            self._answer(call, JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED))
        elif not self._fits(request.protocol_type, protocols):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif not request.member_id:
            self._join_first(call, request, protocols, now)
        elif request.member_id not in self.pending:
            self._join_again(call, request, protocols, now)
        elif request.group_instance_id is None:
            self._add(call, request, protocols, request.member_id, now)
        else:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a static member cannot join with a pending member id")

    def _has_room_for(self, member_id: str) -> bool:
        """Return whether the group can accept this member. During a rebalance, only members that have joined count."""
        if self.state is GroupState.EMPTY:
            return True
        member = self.members.by_id.get(member_id)
        if self.state is not GroupState.PREPARING_REBALANCE:
            return member is not None or len(self.members) < self._settings.max_size
        joined = sum(other.joining is not None for other in self.members)
        return (member is not None and member.joining is not None) or joined < self._settings.max_size

    def _fits(self, protocol_type: str, protocols: Protocols) -> bool:
        if self.state is GroupState.EMPTY:
            return bool(protocol_type and protocols)
        return protocol_type == self.protocol_type and self.members.support_one_of(protocols)

    def _join_first(self, call: Call, request: JoinGroupRequest, protocols: Protocols, now: int) -> None:
        """Handle the JoinGroup of a client without a member id."""
        instance_id = request.group_instance_id
        member_id = f"{(call.client_id if instance_id is None else instance_id)[:LONGEST_PREFIX]}-{uuid4()}"
        if instance_id is not None and instance_id in self.members.instances:
            self._replace(call, request, protocols, member_id, now)
        elif instance_id is None and call.version >= FIRST_VERSION_OF_REQUIRED_IDS:
            self.pending[member_id] = now + request.session_timeout_ms
            # The client of a dropped id receives UNKNOWN_MEMBER_ID and requests a new id.
            if len(self.pending) > MOST_PENDING:
                self.pending.pop(next(iter(self.pending)))
            self._answer(call, JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id))
        else:
            self._add(call, request, protocols, member_id, now)

    def _add(self, call: Call, request: JoinGroupRequest, protocols: Protocols, member_id: str, now: int) -> None:
        self.pending.pop(member_id, None)
        if not self.members:
            self.protocol_type = request.protocol_type
        self._more_came |= self.state is GroupState.PREPARING_REBALANCE and self._initial
        member = ClassicMember(
            member_id,
            request.group_instance_id,
            call.client_id,
            call.client_host,
            request.session_timeout_ms,
            request.rebalance_timeout_ms,
            protocols,
            deadline=now + NEW_MEMBER_TIMEOUT,
            joining=call,
            is_new=True,
        )
        self.members.add(member)
        self._rebalance(f"{member_id} joins{_reason(request)}", now)

    def _join_again(self, call: Call, request: JoinGroupRequest, protocols: Protocols, now: int) -> None:
        """Handle the JoinGroup of a member. Start a rebalance, or answer with the generation if nothing has changed."""
        member = self.members.check(request.member_id, request.group_instance_id)
        # A leader joins again in Stable because the topics have changed. Its metadata does not show that.
        leads = self.state is GroupState.STABLE and member.member_id == self.members.leader_id
        if self.state is GroupState.PREPARING_REBALANCE or leads or member.protocols != protocols:
            self._update(member, call, request, protocols)
            self._rebalance(f"{member.member_id} joins again{_reason(request)}", now)
        else:
            self._answer(call, self._generation_for(member))

    def _update(self, member: ClassicMember, call: Call, request: JoinGroupRequest, protocols: Protocols) -> None:
        if member.joining is not None:  # The member has sent the request again on another connection.
            self._answer(member.joining, JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        member.joining, member.protocols = call, protocols
        member.session_timeout, member.rebalance_timeout = request.session_timeout_ms, request.rebalance_timeout_ms

    def _replace(self, call: Call, request: JoinGroupRequest, protocols: Protocols, member_id: str, now: int) -> None:
        """Give a static member that has restarted a new member id, and fence its old id.

        A Stable group that would choose the same protocol stays Stable and keeps the assignment.
        """
        member = self.members.by_id[self.members.instances[request.group_instance_id or ""]]
        before = member.member_id, member.protocols, member.session_timeout, member.rebalance_timeout
        old_leader = self.members.leader_id
        self._dismiss(member, ErrorCode.FENCED_INSTANCE_ID, member.member_id)
        self._rename(member, member_id)
        member.is_new, member.deadline = False, now + member.session_timeout
        self._update(member, call, request, protocols)
        if self.state is not GroupState.STABLE or self.members.select_protocol() != self.protocol:
            self._rebalance(f"static member {member.group_instance_id} has restarted{_reason(request)}", now)
            return

        def then(error: KafkaError | None, now: int) -> None:
            if self.state is not GroupState.STABLE or member.joining is not call:
                return  # The rebalance that has started since then sends the response.
            member.joining = None
            if error is None:
                self._answer(call, self._welcome_back(member, call, old_leader))
                return
            self._rename(member, before[0])
            _, member.protocols, member.session_timeout, member.rebalance_timeout = before
            self._answer(call, JoinGroupResponse(error_code=error.code))

        self._write({other.member_id: other.assignment for other in self.members}, then)

    def _rename(self, member: ClassicMember, member_id: str) -> None:
        if member.member_id in self.unsynced:
            self.unsynced.remove(member.member_id)
            self.unsynced.add(member_id)
        self.members.rename(member, member_id)

    def _welcome_back(self, member: ClassicMember, call: Call, old_leader: str | None) -> JoinGroupResponse:
        """Return the response to a restarted static member. A leader must not compute a new assignment."""
        answer = self._generation_for(member)
        if call.version >= FIRST_VERSION_OF_SKIPPED_ASSIGNMENT:
            answer.skip_assignment = bool(answer.members)
        else:  # The leader in the response is the member's old id, so the member acts as a follower.
            answer.leader, answer.members = old_leader or "", []
        return answer

    # -- SyncGroup, Heartbeat, LeaveGroup, OffsetCommit

    def sync(self, call: Call, request: SyncGroupRequest, now: int) -> None:
        """Handle SyncGroup: the leader sends the assignment, the others wait. Raises KafkaError if rejected at once."""
        member = self._check(request.member_id, request.group_instance_id, request.generation_id)
        if _differ(request.protocol_type, self.protocol_type) or _differ(request.protocol_name, self.protocol):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if self.state is GroupState.PREPARING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        self.unsynced.discard(member.member_id)
        if not self.unsynced:
            self._sync_deadline = None
        if self.state is GroupState.STABLE:
            self._answer(call, self._assignment_for(member))
            return
        if member.syncing is not None:  # The member has sent the request again on another connection.
            self._answer(member.syncing, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        member.syncing = call
        if member.member_id == self.members.leader_id:
            self._store({part.member_id: bytes(part.assignment) for part in request.assignments})

    def heartbeat(self, request: HeartbeatRequest, now: int) -> None:
        """Keep the session alive. Raises REBALANCE_IN_PROGRESS if the member must join again, or as `_check` does."""
        member = self._check(request.member_id, request.group_instance_id, request.generation_id)
        member.deadline = now + member.session_timeout
        if self.state is GroupState.PREPARING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def check_commit(self, commit: Commit, now: int) -> None:
        """Check that the sender of a commit is a current member. Outside transactions, the commit extends its session.

        Raises COORDINATOR_NOT_AVAILABLE, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
        REBALANCE_IN_PROGRESS.
        """
        if (self.state is GroupState.EMPTY and commit.epoch < 0) or (commit.is_nobodys and not self.is_unloaded):
            return  # an admin client, or a consumer that uses the group only to store offsets
        member = self._check(commit.member_id, commit.group_instance_id, commit.epoch)
        if commit.producer is not None:
            return
        if self.state is GroupState.COMPLETING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        member.deadline = now + member.session_timeout

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Allow every fetch of offsets: the classic protocol has no restriction."""

    def _check(self, member_id: str, group_instance_id: str | None, generation: int) -> ClassicMember:
        if self.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        member = self.members.check(member_id, group_instance_id)
        if generation != self.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        return member

    def leave(self, leaving: Sequence[MemberIdentity], now: int) -> list[ErrorCode]:
        """Remove members by member id or group instance id. Return one error code each.

        Raises COORDINATOR_NOT_AVAILABLE if the group is unloaded.
        """
        if self.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        outcomes = [self._leave(identity) for identity in leaving]
        gone = [
            f"{identity.member_id or identity.group_instance_id} leaves{_reason(identity)}"
            for identity, code in zip(leaving, outcomes, strict=True)
            if not code
        ]
        if gone and self.state is not GroupState.EMPTY:  # in Empty, the removed id was pending
            self._rebalance(", ".join(gone), now)
        return outcomes

    def _leave(self, identity: MemberIdentity) -> ErrorCode:
        member_id = identity.member_id
        if not member_id and identity.group_instance_id is not None:
            member_id = self.members.instances.get(identity.group_instance_id, "")
        try:
            if member_id not in self.pending:
                self.members.check(member_id, identity.group_instance_id)
        except KafkaError as error:
            return error.code
        self._remove(member_id)
        return ErrorCode.NONE

    # -- admin requests

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return self.state is GroupState.EMPTY

    def describe(self) -> DescribedGroup:
        """Return the state and the members. Only a Stable group has a protocol, and so metadata of its members."""
        protocol = self.protocol if self.state is GroupState.STABLE else None
        return DescribedGroup(
            group_id=self.group_id,
            group_state=self.state.value,
            protocol_type=self.protocol_type or "",
            protocol_data=protocol or "",
            members=[
                DescribedGroup.DescribedGroupMember(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    member_metadata=b"" if protocol is None else member.metadata(protocol),
                    member_assignment=member.assignment,
                )
                for member in self.members
            ],
        )

    def tombstones(self) -> list[KeyAndValue]:
        """Return the tombstone of the group's record. Raises NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND."""
        if self.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        if self.state is not GroupState.EMPTY:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        return [(encode_key(GroupMetadataKey(group=self.group_id)), None)]


def _differ(requested: str | None, known: str | None) -> bool:
    return requested is not None and known is not None and requested != known


def _reason(request: JoinGroupRequest | MemberIdentity) -> str:
    return f" ({request.reason[:LONGEST_REASON]})" if request.reason else ""
