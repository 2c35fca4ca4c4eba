"""One group of the classic protocol: a state machine without threads, clocks or sockets.

A step is a request (`join`, `sync`, `heartbeat`, `leave`, `check_commit`) or the passing of time (`tick`).  It changes
the state, and what must happen outside is left in three places for whoever made the step (shared_group.py):

- `answers`: requests that waited, each with its answer;
- `writes`: the group's record, to be written to the journal; `Write.then` is the step that follows, with which those
  answers come that must not go out before the record is safe;
- `next_deadline()`: when `tick` has something to do, if nothing else happens before.

`now` is in ms of a clock that never jumps.  `clock` is the one on the wall: the record says since when the group is in
its state, so that the offsets of one that is long Empty can expire.

The protocol, as a member sees it.  It joins without a member id and is given one (MEMBER_ID_REQUIRED), which is
*pending* until it joins with that (KIP-394).  The answer comes when all have joined: the generation, the protocol, the
leader.  The leader gets the members with their metadata too, assigns the work, and hands that in by SyncGroup; the
others ask for theirs.  From then on heartbeats keep the session; REBALANCE_IN_PROGRESS in their answer is the call to
join again.  Cooperative rebalancing (KIP-429) is this very protocol: members keep what they own and rebalance twice.

A member with a live session is never told UNKNOWN_MEMBER_ID while the group rebalances: it is removed only when it
leaves, when its session ends, or when it misses a rebalance.

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
from hmb.coordinator.group import Commit, KeyAndValue
from hmb.coordinator.group_records import GroupMetadataKey, GroupMetadataValue, encode_key
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.describe_groups import DescribeGroupsResponse
from hmb.protocol.messages.heartbeat import HeartbeatRequest
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from hmb.protocol.messages.leave_group import LeaveGroupRequest
from hmb.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

FIRST_VERSION_OF_REQUIRED_IDS = 4
FIRST_VERSION_OF_SKIPPED_ASSIGNMENT = JoinGroupResponse.first_version("skip_assignment")
LONGEST_PREFIX = 255  # characters of a client id in a member id, which as a whole must fit into a string of the wire
MOST_PENDING = 1000  # member ids that were assigned and not joined with: a client can ask for any number
LONGEST_REASON = 255  # characters, as Kafka's clients send it

Protocols = Sequence[tuple[str, bytes]]
MemberIdentity = LeaveGroupRequest.MemberIdentity
DescribedGroup = DescribeGroupsResponse.DescribedGroup


class ClassicGroup(ClassicRebalance):
    """The requests, on top of the rebalance."""

    @classmethod
    def restore(
        cls, group_id: str, value: GroupMetadataValue, settings: GroupSettings, clock: Callable[[], int]
    ) -> Self:
        """As its record tells."""
        group = cls(group_id, settings, clock)
        group.members = decode_members(value)
        group.state = GroupState.STABLE if group.members else GroupState.EMPTY
        group.generation = value.generation
        group.protocol_type, group.protocol = value.protocol_type or None, value.protocol
        group.state_timestamp = value.current_state_timestamp
        return group

    def resume(self, now: int) -> None:
        """All is restored: its members have a session's time to be heard of."""
        for member in self.members:
            if member.deadline is None:
                member.deadline = now + member.session_timeout
        if len(self.members) > self._settings.max_size:
            self._prepare(f"it has {len(self.members)} members, more than it may have now", now)

    # -- JoinGroup

    def join(self, call: Call, request: JoinGroupRequest, now: int) -> None:
        """Become a member, or stay one.  Raises what can be said at once."""
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
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a static member is given no id to join with")

    def _has_room_for(self, member_id: str) -> bool:
        """In a rebalance those count who have come, so that the last ones find the group full; else all."""
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
        """A client without a member id."""
        instance_id = request.group_instance_id
        member_id = f"{(call.client_id if instance_id is None else instance_id)[:LONGEST_PREFIX]}-{uuid4()}"
        if instance_id is not None and instance_id in self.members.instances:
            self._replace(call, request, protocols, member_id, now)
        elif instance_id is None and call.version >= FIRST_VERSION_OF_REQUIRED_IDS:
            self.pending[member_id] = now + request.session_timeout_ms
            if len(self.pending) > MOST_PENDING:  # its client is UNKNOWN_MEMBER_ID, and gets another id
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
        """A member.  Where that may change something the group rebalances, else it hears what was agreed on."""
        member = self.members.check(request.member_id, request.group_instance_id)
        # A leader that comes again in Stable has a reason that its metadata does not tell: the topics have changed.
        leads = self.state is GroupState.STABLE and member.member_id == self.members.leader_id
        if self.state is GroupState.PREPARING_REBALANCE or leads or member.protocols != protocols:
            self._update(member, call, request, protocols)
            self._rebalance(f"{member.member_id} joins again{_reason(request)}", now)
        else:
            self._answer(call, self._generation_for(member))

    def _update(self, member: ClassicMember, call: Call, request: JoinGroupRequest, protocols: Protocols) -> None:
        if member.joining is not None:  # it asks again, on another connection
            self._answer(member.joining, JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        member.joining, member.protocols = call, protocols
        member.session_timeout, member.rebalance_timeout = request.session_timeout_ms, request.rebalance_timeout_ms

    def _replace(self, call: Call, request: JoinGroupRequest, protocols: Protocols, member_id: str, now: int) -> None:
        """A static member is back: it gets a new member id, its old one is fenced.

        Where the group is Stable and would choose the same protocol it stays so, with the assignment as it is.
        """
        member = self.members.by_id[self.members.instances[request.group_instance_id or ""]]
        before = member.member_id, member.protocols, member.session_timeout, member.rebalance_timeout
        old_leader = self.members.leader_id
        self._dismiss(member, ErrorCode.FENCED_INSTANCE_ID, member.member_id)
        self._rename(member, member_id)
        member.is_new, member.deadline = False, now + member.session_timeout
        self._update(member, call, request, protocols)
        if self.state is not GroupState.STABLE or self.members.select_protocol() != self.protocol:
            self._rebalance(f"static member {member.group_instance_id} is back{_reason(request)}", now)
            return

        def then(error: KafkaError | None, now: int) -> None:
            if self.state is not GroupState.STABLE or member.joining is not call:
                return  # the rebalance that began in between answers
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
        """The generation; if it leads, it must not assign anew what nobody would be told."""
        answer = self._generation_for(member)
        if call.version >= FIRST_VERSION_OF_SKIPPED_ASSIGNMENT:
            answer.skip_assignment = bool(answer.members)
        else:  # it takes itself for a follower, when the leader is its own old id
            answer.leader, answer.members = old_leader or "", []
        return answer

    # -- SyncGroup, Heartbeat, LeaveGroup, OffsetCommit

    def sync(self, call: Call, request: SyncGroupRequest, now: int) -> None:
        """Ask for the assignment; the leader brings it.  Raises what can be said at once."""
        member = self._check(request.member_id, request.group_instance_id, request.generation_id)
        if _differ(request.protocol_type, self.protocol_type) or _differ(request.protocol_name, self.protocol):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if self.state is GroupState.PREPARING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        self.unsynced.discard(member.member_id)
        if not self.unsynced:
            self._sync_deadline = None
        if self.state is GroupState.STABLE:
            self._answer(call, self._part_of(member))
            return
        if member.syncing is not None:  # it asks again, on another connection
            self._answer(member.syncing, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        member.syncing = call
        if member.member_id == self.members.leader_id:
            self._store({part.member_id: bytes(part.assignment) for part in request.assignments})

    def heartbeat(self, request: HeartbeatRequest, now: int) -> None:
        """Raises REBALANCE_IN_PROGRESS where the member has to join again, or who it is not."""
        member = self._check(request.member_id, request.group_instance_id, request.generation_id)
        member.deadline = now + member.session_timeout
        if self.state is GroupState.PREPARING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def check_commit(self, commit: Commit, now: int) -> None:
        """Whether these may commit offsets; outside of transactions a member's session goes on by it.

        Raises COORDINATOR_NOT_AVAILABLE, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
        REBALANCE_IN_PROGRESS.
        """
        if (self.state is GroupState.EMPTY and commit.epoch < 0) or (commit.is_nobodys and not self.is_unloaded):
            return  # an admin, or a consumer that is in no group and only keeps its offsets here
        member = self._check(commit.member_id, commit.group_instance_id, commit.epoch)
        if commit.producer is not None:
            return
        if self.state is GroupState.COMPLETING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        member.deadline = now + member.session_timeout

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Whoever asks may know."""

    def _check(self, member_id: str, group_instance_id: str | None, generation: int) -> ClassicMember:
        if self.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        member = self.members.check(member_id, group_instance_id)
        if generation != self.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        return member

    def leave(self, leaving: Sequence[MemberIdentity], now: int) -> list[ErrorCode]:
        """Let these go, by member id or group instance id; what became of each.  Raises COORDINATOR_NOT_AVAILABLE."""
        if self.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        outcomes = [self._leave(identity) for identity in leaving]
        gone = [
            f"{identity.member_id or identity.group_instance_id} leaves{_reason(identity)}"
            for identity, code in zip(leaving, outcomes, strict=True)
            if not code
        ]
        if gone and self.state is not GroupState.EMPTY:  # in Empty it was an id that nobody had joined with
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

    # -- admins

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return self.state is GroupState.EMPTY

    def describe(self) -> DescribedGroup:
        """Its state and members; their metadata only when it is Stable, as there is no protocol before."""
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
        """What deletes its record.  Raises NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND."""
        if self.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        if self.state is not GroupState.EMPTY:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        return [(encode_key(GroupMetadataKey(group=self.group_id)), None)]


def _differ(told: str | None, known: str | None) -> bool:
    return told is not None and known is not None and told != known


def _reason(request: JoinGroupRequest | MemberIdentity) -> str:
    return f" ({request.reason[:LONGEST_REASON]})" if request.reason else ""
