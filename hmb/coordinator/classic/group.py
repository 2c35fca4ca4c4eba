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

from hmb.coordinator.classic.members import (
    NEW_MEMBER_TIMEOUT,
    Call,
    ClassicMember,
    ClassicMembers,
    Protocols,
    protocols_of,
)
from hmb.coordinator.classic.older_clients import requests_member_id
from hmb.coordinator.classic.rebalance import ClassicRebalance
from hmb.coordinator.classic.record import decode_members
from hmb.coordinator.classic.settings import GroupSettings
from hmb.coordinator.classic.states import ClassicGroupState, GroupEvent
from hmb.coordinator.classic.static_members import replace_member
from hmb.coordinator.group import Commit
from hmb.coordinator.journal.records import GroupMetadataKey, GroupMetadataValue, KeyAndValue, encode_key
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.describe_groups import DescribeGroupsResponse
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from hmb.protocol.messages.leave_group import LeaveGroupRequest

LONGEST_PREFIX = 255  # characters of the client id at the start of a member id, whose length an int16 limits
LONGEST_REASON = 255  # characters, the limit of Kafka's clients

MemberIdentity = LeaveGroupRequest.MemberIdentity
DescribedGroup = DescribeGroupsResponse.DescribedGroup


class ClassicGroup(ClassicRebalance):
    """One classic group. This class handles the requests that change its members, and its base class the rebalance."""

    @classmethod
    def restore(
        cls, group_id: str, value: GroupMetadataValue, settings: GroupSettings, clock: Callable[[], int]
    ) -> Self:
        """Return the group that is described by a record of the journal."""
        group = cls(group_id, settings, clock)
        group.members = decode_members(value)
        group.state = ClassicGroupState.STABLE if group.members else ClassicGroupState.EMPTY
        group.generation = value.generation
        group.protocol_type, group.protocol = value.protocol_type or None, value.protocol
        group.state_timestamp = value.current_state_timestamp
        return group

    def resume(self, now: int) -> None:
        """Start the sessions of the restored members. A member must send a request within its session timeout."""
        for member in self.members:
            if member.deadline is None:
                member.extend_session(now)
        if len(self.members) > self._settings.max_size:
            self._prepare(f"the group has {len(self.members)} members, more than group.max.size", now)

    # -- JoinGroup

    def join(self, call: Call, request: JoinGroupRequest, now: int) -> None:
        """Add a member, or let a member join again. Raises KafkaError if the request is rejected at once."""
        if self.state is ClassicGroupState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        protocols = protocols_of(request)
        if not self._has_room_for(request.member_id):
            self.remove(request.member_id)
            self.answer(call, JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED))
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
        if self.state is ClassicGroupState.EMPTY:
            return True
        member = self.members.by_id.get(member_id)
        if self.state is not ClassicGroupState.PREPARING_REBALANCE:
            return member is not None or len(self.members) < self._settings.max_size
        joined = sum(other.joining is not None for other in self.members)
        return (member is not None and member.joining is not None) or joined < self._settings.max_size

    def _fits(self, protocol_type: str, protocols: Protocols) -> bool:
        if self.state is ClassicGroupState.EMPTY:
            return bool(protocol_type and protocols)
        return protocol_type == self.protocol_type and self.members.support_one_of(protocols)

    def _join_first(self, call: Call, request: JoinGroupRequest, protocols: Protocols, now: int) -> None:
        """Handle the JoinGroup of a client without a member id."""
        instance_id = request.group_instance_id
        member_id = f"{(call.client_id if instance_id is None else instance_id)[:LONGEST_PREFIX]}-{uuid4()}"
        if instance_id is not None and instance_id in self.members.instances:
            because = f"static member {instance_id} has restarted{_reason(request)}"
            replace_member(self, call, request, member_id, because, now)
        elif instance_id is None and requests_member_id(call):
            self.pending.add(member_id, now + request.session_timeout_ms)
            self.answer(call, JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id))
        else:
            self._add(call, request, protocols, member_id, now)

    def _add(self, call: Call, request: JoinGroupRequest, protocols: Protocols, member_id: str, now: int) -> None:
        self.pending.pop(member_id, None)
        if not self.members:
            self.protocol_type = request.protocol_type
        self._initial_delay.on_join()
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
        self.rebalance(f"{member_id} joins{_reason(request)}", now)

    def _join_again(self, call: Call, request: JoinGroupRequest, protocols: Protocols, now: int) -> None:
        """Handle the JoinGroup of a member. Start a rebalance, or answer with the generation if nothing has changed."""
        member = self.members.check(request.member_id, request.group_instance_id)
        # If the leader of a Stable group joins again with unchanged metadata, a topic that the group reads has changed.
        # The group must then rebalance.
        leads = self.state is ClassicGroupState.STABLE and member.member_id == self.members.leader_id
        if self.state is ClassicGroupState.PREPARING_REBALANCE or leads or member.protocols != protocols:
            self.wait_for_generation(member, call)
            member.update(request)
            self.rebalance(f"{member.member_id} joins again{_reason(request)}", now)
        else:
            self.answer(call, self.generation_for(member))

    # -- OffsetCommit and LeaveGroup

    def check_commit(self, commit: Commit, now: int) -> None:
        """Check that the sender of a commit is a current member. Outside transactions, the commit extends its session.

        Raises COORDINATOR_NOT_AVAILABLE, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
        REBALANCE_IN_PROGRESS.
        """
        if (self.state is ClassicGroupState.EMPTY and commit.epoch < 0) or (commit.is_nobodys and not self.is_unloaded):
            return  # The sender is an admin client, or a consumer that uses the group only to store offsets.
        member = self._check(commit.member_id, commit.group_instance_id, commit.epoch)
        if commit.producer is not None:
            return
        if self.state is ClassicGroupState.COMPLETING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        member.extend_session(now)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Allow every fetch of offsets: the classic protocol has no restriction."""

    def leave(self, leaving: Sequence[MemberIdentity], now: int) -> list[ErrorCode]:
        """Remove members by member id or group instance id. Return an error code for each of them.

        Raises COORDINATOR_NOT_AVAILABLE if the group is unloaded.
        """
        if self.state is ClassicGroupState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        outcomes = [self._leave(identity) for identity in leaving]
        gone = [
            f"{identity.member_id or identity.group_instance_id} leaves{_reason(identity)}"
            for identity, code in zip(leaving, outcomes, strict=True)
            if not code
        ]
        if gone and self.state is not ClassicGroupState.EMPTY:  # In an Empty group, only a pending id was removed.
            self.rebalance(", ".join(gone), now)
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
        self.remove(member_id)
        return ErrorCode.NONE

    # -- the end of the group

    def unload(self) -> None:
        """End the group, because the broker stops or the group is deleted. Waiting members receive NOT_COORDINATOR."""
        if self.state is ClassicGroupState.DEAD:
            return
        for member in self.members:
            self.dismiss(member, ErrorCode.NOT_COORDINATOR, member.member_id)
        self.members = ClassicMembers()
        self.pending.clear()
        self._join_deadline = self._sync_deadline = None
        self._move(GroupEvent.UNLOADED)

    def tombstones(self) -> list[KeyAndValue]:
        """Return the tombstone of the group's record. Raises NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND."""
        if self.state is ClassicGroupState.DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        if self.state is not ClassicGroupState.EMPTY:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        return [(encode_key(GroupMetadataKey(group=self.group_id)), None)]

    # -- admin requests

    @property
    def size(self) -> int:
        """The size of all members' metadata in bytes."""
        return self.members.size

    @property
    def is_unloaded(self) -> bool:
        return self.state is ClassicGroupState.DEAD

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicGroupState.EMPTY

    def describe(self) -> DescribedGroup:
        """Return the state and the members. Only a Stable group has a protocol, and so metadata of its members."""
        protocol = self.protocol if self.state is ClassicGroupState.STABLE else None
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


def _reason(request: JoinGroupRequest | MemberIdentity) -> str:
    return f" ({request.reason[:LONGEST_REASON]})" if request.reason else ""
