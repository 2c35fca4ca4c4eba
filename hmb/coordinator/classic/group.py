"""One classic group and its requests: a state machine without threads, clocks or sockets.

A *step* is a request (`join`, `leave`, `check_commit`, `rebalance.sync`, `rebalance.heartbeat`) or a check of the
deadlines (`tick`). A step changes the state of the group. After each step, the caller (shared_group.py) uses these
results:
- `responses` contains requests together with their responses. The caller sends the responses.
- `writes` contains records for the journal. The caller stores the records and then runs `Write.on_stored`. This
  function is another step: it produces the responses that the caller must not send before the records are on disk.
- `next_deadline()` returns the time at which the caller must call `tick`.

A client becomes a member of a group in these steps:
1. A client sends JoinGroup without a member id. The response contains the error MEMBER_ID_REQUIRED and a new member id
   (KIP-394). The id is *pending* until the client joins with it.
2. The client sends JoinGroup with the id. When all members have joined, each response contains the generation, the
   protocol and the leader. The response to the leader also contains the metadata of all members.
3. The leader assigns the partitions to the members and sends the assignment with SyncGroup. The other members send
   SyncGroup too, and wait for the assignment. Each member receives a response with its own partitions.
4. Each member sends heartbeats to keep its session alive. If a response contains the error REBALANCE_IN_PROGRESS, the
   member joins again.

Cooperative rebalancing (KIP-429) uses the same requests. The members keep their partitions during a rebalance. In a
first rebalance, a member gives up the partitions that must move. In a second rebalance, other members receive them.

For example, a consumer with client id "app" joins an empty group. The first JoinGroup response contains the member id
"app-6f1c...". The second JoinGroup response follows after an initial delay of 3 s and contains generation 1.

Invariant: while a rebalance runs, a member with a live session never receives the error UNKNOWN_MEMBER_ID. The
coordinator removes a member in only three cases: the member leaves, its session ends, or it does not join or sync in
time.

The parameter `now` is a time in ms from a clock that never jumps. The function `clock` returns the time in ms since
1970, which the group writes into its record.

Source: Kafka's `GroupMetadataManager` (classicGroup...); KIP-62, KIP-345, KIP-394, KIP-559, KIP-814.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Self
from uuid import uuid4

from hmb.coordinator.classic.members import (
    NEW_MEMBER_TIMEOUT,
    Call,
    ClassicMember,
    Protocols,
    protocols_of,
)
from hmb.coordinator.classic.older_clients import requests_member_id
from hmb.coordinator.classic.rebalance import UNLOADED, Rebalance
from hmb.coordinator.classic.record import decode_members
from hmb.coordinator.classic.settings import GroupSettings
from hmb.coordinator.classic.static_members import replace_member
from hmb.coordinator.group import Commit
from hmb.coordinator.journal.records import GroupMetadataKey, GroupMetadataValue, KeyAndValue, encode_key
from hmb.protocol.enums import GroupState, GroupType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.describe_groups import DescribeGroupsResponse
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from hmb.protocol.messages.leave_group import LeaveGroupRequest

LONGEST_PREFIX = 255  # characters that a member id takes from the client id, so that its length fits an int16
LONGEST_REASON = 255  # limit for the characters of a reason; Kafka's clients have the same limit

MemberIdentity = LeaveGroupRequest.MemberIdentity
DescribedGroup = DescribeGroupsResponse.DescribedGroup


class ClassicGroup:
    """A classic group. It handles the requests that change the members, and `rebalance` handles the rebalance.

    `responses` and `writes` are the same lists as in `rebalance`.
    """

    kind: ClassVar[str] = GroupType.CLASSIC

    def __init__(self, group_id: str, settings: GroupSettings, clock: Callable[[], int]) -> None:
        self.group_id = group_id
        self.rebalance = Rebalance(group_id, settings.initial_delay, clock)
        self.responses, self.writes = self.rebalance.responses, self.rebalance.writes
        self._settings = settings

    @property
    def protocol_type(self) -> str | None:
        return self.rebalance.protocol_type

    @classmethod
    def restore(
        cls, group_id: str, value: GroupMetadataValue, settings: GroupSettings, clock: Callable[[], int]
    ) -> Self:
        """Return the group that is stored in a record of the journal. `value` is the value of this record."""
        group = cls(group_id, settings, clock)
        group.rebalance.members = decode_members(value)
        group.rebalance.state = GroupState.STABLE if group.rebalance.members else GroupState.EMPTY
        group.rebalance.generation = value.generation
        group.rebalance.protocol_type, group.rebalance.protocol = value.protocol_type or None, value.protocol
        group.rebalance.state_timestamp = value.current_state_timestamp
        return group

    def resume(self, now: int) -> None:
        """Start the sessions of the members that the broker has restored from the journal.

        Each member must send a request within its session timeout. A group with too many members starts a rebalance.
        """
        for member in self.rebalance.members:
            if member.deadline is None:
                member.extend_session(now)
        if len(self.rebalance.members) > self._settings.max_size:
            because = f"the group has {len(self.rebalance.members)} members, more than group.max.size"
            self.rebalance.prepare(because, now)

    # -- JoinGroup

    def join(self, call: Call, request: JoinGroupRequest, now: int) -> None:
        """Handle a JoinGroup request of a new or a known member. Raises KafkaError if the group rejects the request."""
        if self.rebalance.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, UNLOADED)
        protocols = protocols_of(request)
        if not self._has_room_for(request.member_id):
            self.rebalance.remove(request.member_id)
            self.rebalance.queue_response(call, JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED))
        elif not self._fits(request.protocol_type, protocols):
            why = "the group has another protocol type, or no member supports one of the protocols in the request"
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, why)
        elif not request.member_id:
            self._join_first(call, request, protocols, now)
        elif request.member_id not in self.rebalance.pending:
            self._join_again(call, request, protocols, now)
        elif request.group_instance_id is None:
            self._add(call, request, protocols, request.member_id, now)
        else:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a static member cannot join with a pending member id")

    def _has_room_for(self, member_id: str) -> bool:
        """Return whether the group can accept this member.

        The group must have fewer than `group.max.size` members. While a rebalance waits for members, the group counts
        only the members that have joined this rebalance.
        """
        if self.rebalance.state is GroupState.EMPTY:
            return True
        member = self.rebalance.members.by_id.get(member_id)
        if self.rebalance.state is not GroupState.PREPARING_REBALANCE:
            return member is not None or len(self.rebalance.members) < self._settings.max_size
        joined = sum(other.joining is not None for other in self.rebalance.members)
        return (member is not None and member.joining is not None) or joined < self._settings.max_size

    def _fits(self, protocol_type: str, protocols: Protocols) -> bool:
        if self.rebalance.state is GroupState.EMPTY:
            return bool(protocol_type and protocols)
        return protocol_type == self.rebalance.protocol_type and self.rebalance.members.support_one_of(protocols)

    def _join_first(self, call: Call, request: JoinGroupRequest, protocols: Protocols, now: int) -> None:
        """Handle the JoinGroup request of a client that has no member id yet."""
        instance_id = request.group_instance_id
        member_id = f"{(call.client_id if instance_id is None else instance_id)[:LONGEST_PREFIX]}-{uuid4()}"
        if instance_id is not None and instance_id in self.rebalance.members.instances:
            because = f"static member {instance_id} has restarted{_reason(request)}"
            replace_member(self.rebalance, call, request, member_id, because, now)
        elif instance_id is None and requests_member_id(call):
            self.rebalance.pending.add(member_id, now + request.session_timeout_ms)
            response = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
            self.rebalance.queue_response(call, response)
        else:
            self._add(call, request, protocols, member_id, now)

    def _add(self, call: Call, request: JoinGroupRequest, protocols: Protocols, member_id: str, now: int) -> None:
        self.rebalance.pending.pop(member_id, None)
        if not self.rebalance.members:
            self.rebalance.protocol_type = request.protocol_type
        self.rebalance.on_join()
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
        self.rebalance.members.add(member)
        self.rebalance.start(f"{member_id} joins{_reason(request)}", now)

    def _join_again(self, call: Call, request: JoinGroupRequest, protocols: Protocols, now: int) -> None:
        """Handle the JoinGroup request of a client that is already a member.

        If the request changes nothing, the response contains the current generation. Otherwise start a rebalance.
        """
        member = self.rebalance.members.check(request.member_id, request.group_instance_id)
        # If a topic of the group has changed, the leader of a Stable group joins again. The group must rebalance, even
        # if the leader's metadata is the same as before.
        leads = self.rebalance.state is GroupState.STABLE and member.member_id == self.rebalance.members.leader_id
        if self.rebalance.state is GroupState.PREPARING_REBALANCE or leads or member.protocols != protocols:
            self.rebalance.wait_for_generation(member, call)
            member.update(request)
            self.rebalance.start(f"{member.member_id} joins again{_reason(request)}", now)
        else:
            self.rebalance.queue_response(call, self.rebalance.generation_for(member))

    # -- OffsetCommit and LeaveGroup

    def check_commit(self, commit: Commit, now: int) -> None:
        """Check that the sender of an offset commit is a current member.

        A commit outside a transaction extends the session of the member. Raises COORDINATOR_NOT_AVAILABLE,
        UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS.
        """
        only_stores = self.rebalance.state is GroupState.EMPTY and commit.epoch < 0
        if only_stores or (commit.names_no_member and not self.is_unloaded):
            return  # The sender is no member: an admin client, or a consumer that uses the group only to store offsets.
        member = self.rebalance.check(commit.member_id, commit.group_instance_id, commit.epoch)
        if commit.producer is not None:
            return
        if self.rebalance.state is GroupState.COMPLETING_REBALANCE:
            why = "the group waits for the assignment of the leader; commit after SyncGroup"
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, why)
        member.extend_session(now)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Allow every fetch of committed offsets, because the classic protocol does not check who fetches them."""

    def leave(self, leaving: Sequence[MemberIdentity], now: int) -> list[ErrorCode]:
        """Remove members by member id or group instance id. Return one error code (or NONE) for each entry.

        Raises COORDINATOR_NOT_AVAILABLE if the group is unloaded.
        """
        if self.rebalance.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, UNLOADED)
        outcomes = [self._leave(identity) for identity in leaving]
        gone = [
            f"{identity.member_id or identity.group_instance_id} leaves{_reason(identity)}"
            for identity, code in zip(leaving, outcomes, strict=True)
            if not code
        ]
        # In an Empty group, only a pending id can leave, and no rebalance is necessary.
        if gone and self.rebalance.state is not GroupState.EMPTY:
            self.rebalance.start(", ".join(gone), now)
        return outcomes

    def _leave(self, identity: MemberIdentity) -> ErrorCode:
        member_id = identity.member_id
        if not member_id and identity.group_instance_id is not None:
            member_id = self.rebalance.members.instances.get(identity.group_instance_id, "")
        try:
            if member_id not in self.rebalance.pending:
                self.rebalance.members.check(member_id, identity.group_instance_id)
        except KafkaError as error:
            return error.code
        self.rebalance.remove(member_id)
        return ErrorCode.NONE

    # -- deadlines

    def next_deadline(self) -> int | None:
        """Return the earliest deadline (ms), or None if the group has none."""
        return self.rebalance.next_deadline()

    def tick(self, now: int) -> None:
        """Act on every deadline that has passed."""
        self.rebalance.tick(now)

    # -- deletion of the group

    def unload(self) -> None:
        """Unload the group when the broker stops or deletes the group. Members that wait receive NOT_COORDINATOR."""
        if self.rebalance.state is GroupState.DEAD:
            return
        self.rebalance.cancel()

    def tombstones(self) -> list[KeyAndValue]:
        """Return the tombstone that deletes the group's record. Raises NON_EMPTY_GROUP if the group has members.

        Raises GROUP_ID_NOT_FOUND if the group is already unloaded.
        """
        if self.rebalance.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {self.group_id!r} does not exist any more")
        if self.rebalance.state is not GroupState.EMPTY:
            why = f"group {self.group_id!r} has members; stop them first"
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, why)
        return [(encode_key(GroupMetadataKey(group=self.group_id)), None)]

    # -- admin requests

    @property
    def size(self) -> int:
        """The sum of the sizes of all members' metadata, in bytes."""
        return self.rebalance.members.size

    @property
    def is_unloaded(self) -> bool:
        return self.rebalance.state is GroupState.DEAD

    @property
    def state_name(self) -> str:
        return self.rebalance.state.value

    @property
    def is_empty(self) -> bool:
        return self.rebalance.state is GroupState.EMPTY

    def describe(self) -> DescribedGroup:
        """Return the state and the members of the group for DescribeGroups.

        The response contains the protocol and the metadata of the members only if the group is Stable.
        """
        protocol = self.rebalance.protocol if self.rebalance.state is GroupState.STABLE else None
        return DescribedGroup(
            group_id=self.group_id,
            group_state=self.rebalance.state.value,
            protocol_type=self.rebalance.protocol_type or "",
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
                for member in self.rebalance.members
            ],
        )


def _reason(request: JoinGroupRequest | MemberIdentity) -> str:
    return f" ({request.reason[:LONGEST_REASON]})" if request.reason else ""
