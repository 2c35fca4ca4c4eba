"""One classic group and its requests: a state machine without threads or sockets.

The methods `join`, `sync`, `leave` and `tick` are *steps*: they can change the state of a classic group. The
methods `heartbeat` and `check_commit` are not steps: they only check a member, and can extend its session. A
step sends nothing and writes nothing to disk. It adds responses to the list `responses`, and records to the
list `writes`. After each step, the caller (group_runner.py) does the following:
- It sends the responses in `responses`.
- It stores the records in `writes`, and then calls `Write.on_stored`. This call is another step. It can add
  responses that had to wait until the records were on disk.
- It gets the time of the next deadline from `next_deadline()`, and calls `tick` at this time.

A client becomes a member of a group in these steps:
1. The client sends JoinGroup without a member id. The response contains the error MEMBER_ID_REQUIRED and a new member
   id (KIP-394). This id is *pending* until the client joins with it. Static members and old clients skip this step.
2. The client sends JoinGroup with the new id. It joins the current rebalance, or starts one. The coordinator responds
   when all members have joined, or at a deadline. Each response names the generation, the protocol and the leader. Only
   the leader also gets the metadata of all members.
3. The leader assigns the partitions to the members, and sends the assignment in SyncGroup. The other members send
   SyncGroup without an assignment. The coordinator responds to each member with its own partitions.
4. Each member sends heartbeats to keep its session alive. A new rebalance starts, for example, if another client joins
   or a member is removed. The next response then contains the error REBALANCE_IN_PROGRESS, and the member sends
   JoinGroup again.

With cooperative rebalancing (KIP-429), the members keep their partitions while they send JoinGroup and SyncGroup.
A partition moves in two rebalances. In the first rebalance, its old owner gives it up. In the second rebalance, its
new owner receives it.

For example, a consumer with client id "app" joins an empty group. The first JoinGroup response contains the
member id "app-6f1c...". The consumer joins again with this id. Then the group waits 3 s, so that other consumers
can join the same generation. The response to the second JoinGroup contains generation 1.

Invariant: if a group has at most `group.max.size` members, a rebalance does not remove a member that sends its
requests in time. The coordinator removes the id of a member only in these cases:
- The member leaves, or an administrator removes it.
- The session of the member ends.
- The member does not send SyncGroup in time.
- The member is not static, and does not send JoinGroup in time.
- The member sends JoinGroup, but `group.max.size` other members have already joined the rebalance. The response
  contains GROUP_MAX_SIZE_REACHED.
- A static member restarts and gets a new member id. Requests with its old member id then fail with
  FENCED_INSTANCE_ID (static_members.py).

A group has four kinds of deadlines. `ClassicGroup.tick` handles the deadlines "session" and "pending", and
`Rebalance.tick` handles "join" and "sync":
    session      A member must send a request within its session timeout. Otherwise, the group removes the member.
    pending      A client that has received a member id must join with it within the session timeout. Otherwise, the
                 id becomes invalid.
    join         All members must send JoinGroup within the rebalance timeout. The group removes members that are late,
                 unless they are static.
    sync         All members must send SyncGroup within the rebalance timeout. The group removes members that are late.

While a JoinGroup or SyncGroup request of a member waits for its response, the member's session does not end,
because the group itself causes this wait. There is one exception: if a new member has waited for its JoinGroup
response for 5 minutes, the group removes the member, because the client has perhaps disconnected.

The group does not read the system's time itself, so a test can set the time. For deadlines, the caller passes
`now`, a time in ms that never decreases. For the group's record in the journal, the function `clock` returns
the time in ms since 1970. New member ids end with a random UUID (`uuid4`).

Source: the methods of Kafka's class `GroupMetadataManager` whose names begin with `classicGroup`; KIP-62,
KIP-345, KIP-394, KIP-559, KIP-814.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Self
from uuid import uuid4

from hmb.coordinator.classic.members import (
    NEW_MEMBER_TIMEOUT,
    Call,
    ClassicMember,
    MemberIdentity,
    Protocols,
    protocols_of,
    reason_of,
)
from hmb.coordinator.classic.older_clients import check_protocol, requests_member_id
from hmb.coordinator.classic.rebalance import JOIN_AGAIN, Rebalance
from hmb.coordinator.classic.settings import GroupSettings
from hmb.coordinator.classic.state import ClassicState
from hmb.coordinator.classic.static_members import replace_member
from hmb.coordinator.classic.subscriptions import topics_of
from hmb.coordinator.group import Commit, Group, check_empty
from hmb.coordinator.journal.records import GroupMetadataKey, GroupMetadataValue, KeyAndValue, encode_key
from hmb.protocol.consumer_protocol import CONSUMER
from hmb.protocol.enums import GroupState, GroupType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.heartbeat import HeartbeatRequest
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from hmb.protocol.messages.sync_group import SyncGroupRequest

LONGEST_PREFIX = 255  # characters: a member id begins with at most this many characters of the client id


class ClassicGroup:
    """A classic group. It handles the requests of its members, and decides which clients are members.

    - `state` contains the members and the generation (state.py).
    - `responses` (responses to send) and `writes` (records for the journal) are the same lists as in `state`.
    - `_rebalance` decides when the next generation starts (rebalance.py).
    """

    kind: ClassVar[GroupType] = GroupType.CLASSIC

    def __init__(self, group_id: str, settings: GroupSettings, clock: Callable[[], int]) -> None:
        self.group_id = group_id
        self.state = ClassicState(group_id, clock)
        self.responses, self.writes, self.event_texts = self.state.responses, self.state.writes, self.state.event_texts
        self._rebalance = Rebalance(self.state, settings.initial_delay)
        # In a classic group, this field is always None. Only a KIP-848 group has a successor: the classic group that
        # replaces it in a downgrade.
        self.successor: Group | None = None
        self._settings = settings

    @classmethod
    def restore(
        cls, group_id: str, value: GroupMetadataValue, settings: GroupSettings, clock: Callable[[], int]
    ) -> Self:
        """Return the group that is stored in a record of the journal. `value` is the value of this record."""
        group = cls(group_id, settings, clock)
        group.state.restore(value)
        return group

    def resume(self, now: int) -> None:
        """Start the sessions of all members, after the broker has restored the group from the journal.

        Each member must then send a request within its session timeout. If the group has more than `group.max.size`
        members, start a rebalance, in which at most this number of members can join.
        """
        for member in self.state.members:
            if member.deadline is None:
                member.extend_session(now)
        if len(self.state.members) > self._settings.max_size:
            reason = f"the group has {len(self.state.members)} members, more than group.max.size"
            self._rebalance.prepare(reason, now)

    def start_rebalance(self, reason: str, now: int) -> None:
        """Start a rebalance of this Stable group: all members must join again."""
        self._rebalance.prepare(reason, now)

    # -- JoinGroup

    def join(self, call: Call, request: JoinGroupRequest, now: int) -> None:
        """Handle a JoinGroup request of a new or a known member. Raises KafkaError if the group rejects the request."""
        self.state.check_loaded()
        protocols = protocols_of(request)
        if not self._accepts_joining_member(request.member_id):
            self.state.remove(request.member_id)
            self.state.queue_response(call, JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED))
        elif not self._fits(request.protocol_type, protocols):
            why = "the group has another protocol type, or no member supports one of the protocols in the request"
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, why)
        elif not request.member_id:
            self._join_first(call, request, protocols, now)
        elif request.member_id not in self.state.pending:
            self._join_again(call, request, protocols, now)
        elif request.group_instance_id is None:
            self._add(call, request, protocols, request.member_id, now)
        else:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a static member cannot join with a pending member id")

    def _accepts_joining_member(self, member_id: str) -> bool:
        """Return whether the group accepts a JoinGroup request with this member id.

        The group accepts the request if the sender is already a member, or if the group has fewer than
        `group.max.size` members. While a rebalance waits for JoinGroup requests, only members that have already sent
        JoinGroup count as members.
        """
        if self.state.current is GroupState.EMPTY:
            return True
        member = self.state.members.by_id.get(member_id)
        if self.state.current is not GroupState.PREPARING_REBALANCE:
            return member is not None or len(self.state.members) < self._settings.max_size
        joined = sum(other.joining is not None for other in self.state.members)
        return (member is not None and member.joining is not None) or joined < self._settings.max_size

    def _fits(self, protocol_type: str, protocols: Protocols) -> bool:
        if self.state.current is GroupState.EMPTY:
            return bool(protocol_type and protocols)
        return protocol_type == self.state.protocol_type and self.state.members.support_one_of(protocols)

    def _join_first(self, call: Call, request: JoinGroupRequest, protocols: Protocols, now: int) -> None:
        instance_id = request.group_instance_id
        member_id = f"{(call.client_id if instance_id is None else instance_id)[:LONGEST_PREFIX]}-{uuid4()}"
        if instance_id is not None and instance_id in self.state.members.instances:
            replace_member(self.state, self._rebalance, call, request, member_id, now)
        elif instance_id is None and requests_member_id(call):
            self.state.pending.add(member_id, now + request.session_timeout_ms)
            response = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
            self.state.queue_response(call, response)
        else:
            self._add(call, request, protocols, member_id, now)

    def _add(self, call: Call, request: JoinGroupRequest, protocols: Protocols, member_id: str, now: int) -> None:
        self.state.pending.pop(member_id, None)
        if not self.state.members:
            self.state.protocol_type = request.protocol_type
        self._rebalance.on_join()
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
        self.state.members.add(member)
        self._rebalance.start(f"the new member {member_id} joins{reason_of(request)}", now)

    def _join_again(self, call: Call, request: JoinGroupRequest, protocols: Protocols, now: int) -> None:
        """Handle the JoinGroup request of a client that is already a member.

        In three cases, the request must wait for the next generation: a rebalance is waiting for JoinGroup requests,
        the member's metadata has changed, or the member is the leader of a Stable group. If no rebalance is waiting
        yet, the method starts one. In any other case, the method answers at once with the current generation.
        """
        member = self.state.members.check(request.member_id, request.group_instance_id)
        # When a topic of a Stable group changes, the leader of the group sends a new JoinGroup request. This request
        # must start a rebalance, even if the leader's metadata is unchanged.
        leads = self.state.current is GroupState.STABLE and member.member_id == self.state.members.leader_id
        if self.state.current is GroupState.PREPARING_REBALANCE or leads or member.protocols != protocols:
            self._rebalance.wait_for_generation(member, call)
            member.update(request)
            self._rebalance.start(f"member {member.member_id} joins again{reason_of(request)}", now)
        else:
            self.state.queue_response(call, self.state.join_response_for(member))

    # -- SyncGroup, Heartbeat, OffsetCommit and LeaveGroup

    def sync(self, call: Call, request: SyncGroupRequest, now: int) -> None:
        """Handle a SyncGroup request of a member. Raises KafkaError if the group rejects the request."""
        member = self.state.check(request.member_id, request.group_instance_id, request.generation_id)
        check_protocol(request, self.state.protocol_type, self.state.protocol)
        assignments = {part.member_id: bytes(part.assignment) for part in request.assignments}
        self._rebalance.sync(call, member, assignments, now)

    def heartbeat(self, request: HeartbeatRequest, now: int) -> None:
        """Extend the session of the member that sent a heartbeat.

        Raises REBALANCE_IN_PROGRESS if the member must join again. Raises another error if the group does not know the
        member or the generation.
        """
        member = self.state.check(request.member_id, request.group_instance_id, request.generation_id)
        member.extend_session(now)
        if self.state.current is GroupState.PREPARING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, JOIN_AGAIN)

    def check_commit(self, commit: Commit, now: int) -> None:
        """Check that the sender of an offset commit is a current member.

        A commit outside a transaction extends the session of the member. Raises COORDINATOR_NOT_AVAILABLE,
        UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS.
        """
        only_stores = self.state.current is GroupState.EMPTY and commit.epoch < 0
        if only_stores or (commit.names_no_member and not self.is_unloaded):
            return  # The sender is an admin client, or a consumer that uses the group only to store offsets.
        member = self.state.check(commit.member_id, commit.group_instance_id, commit.epoch)
        if commit.producer is not None:
            return
        if self.state.current is GroupState.COMPLETING_REBALANCE:
            why = "the group waits for the assignment of the leader; commit after SyncGroup"
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, why)
        member.extend_session(now)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Accept every fetch of committed offsets. The classic protocol has no rule about who can fetch them."""

    def reads(self, topic: str) -> bool:
        """Return False if no member reads the topic. Return True if a member reads it, or if this is unknown.

        The topics of the members are unknown in two cases: the group has no protocol that all members support, or the
        group cannot decode the metadata of a member. A group with a protocol type other than "consumer" reads no topic.
        """
        if self.protocol_type != CONSUMER:
            return False
        topics = topics_of(self.state)
        return topics is None or topic in topics

    def leave(self, leaving: Sequence[MemberIdentity], now: int) -> list[ErrorCode]:
        """Remove members by member id or group instance id. Return one error code for each entry of `leaving`.

        For a removed member, the code is `ErrorCode.NONE`. Raises COORDINATOR_NOT_AVAILABLE if the group was deleted or
        the broker stops.
        """
        self.state.check_loaded()
        outcomes = [self._leave(identity) for identity in leaving]
        gone = [
            f"member {identity.member_id or identity.group_instance_id} leaves{reason_of(identity)}"
            for identity, code in zip(leaving, outcomes, strict=True)
            if not code
        ]
        # A client receives its member id before it joins. With this id, it can leave even an Empty group, which has no
        # members. An Empty group needs no rebalance.
        if gone and self.state.current is not GroupState.EMPTY:
            self._rebalance.start(", ".join(gone), now)
        return outcomes

    def _leave(self, identity: MemberIdentity) -> ErrorCode:
        member_id = identity.member_id
        if not member_id and identity.group_instance_id is not None:
            member_id = self.state.members.instances.get(identity.group_instance_id, "")
        try:
            if member_id not in self.state.pending:
                self.state.members.check(member_id, identity.group_instance_id)
        except KafkaError as error:
            return error.code
        self.state.remove(member_id)
        return ErrorCode.NONE

    # -- deadlines

    def next_deadline(self) -> int | None:
        """Return the earliest deadline (ms), or None if the group has none."""
        limits = [member.expires_at for member in self.state.members]
        limits += [*self.state.pending.values(), self._rebalance.next_deadline()]
        return min((limit for limit in limits if limit is not None), default=None)

    def tick(self, now: int) -> None:
        """Remove members and unused member ids that have timed out. Check the deadlines of the current rebalance."""
        for member_id in self.state.pending.expired(now):
            self.event_texts.append(f"no client joined with member id {member_id} in time")
            self.state.remove(member_id)
            self._rebalance.complete_join_if_all_joined(now)
        for member in list(self.state.members):
            if member.member_id in self.state.members and (limit := member.expires_at) is not None and limit <= now:
                self._expire(member, now)
        self._rebalance.tick(now)

    def last_heartbeats(self) -> dict[str, int]:
        """Return a dict: member id -> the time (ms) of the last request that extended the member's session."""
        return {
            member.member_id: member.deadline - member.session_timeout
            for member in self.state.members
            if member.deadline is not None
        }

    def _expire(self, member: ClassicMember, now: int) -> None:
        silent = f"member {member.member_id} has sent no heartbeat for {member.session_timeout / 1000:g} s"
        self.state.remove(member.member_id)
        if self.state.current is GroupState.PREPARING_REBALANCE:
            self.event_texts.append(silent)
            self._rebalance.complete_join_if_all_joined(now)
        else:
            self._rebalance.start(silent, now)

    # -- deletion of the group

    def unload(self) -> None:
        """Remove the members and deadlines from memory, because the broker no longer manages this group.

        Members that wait for a response receive the error NOT_COORDINATOR.
        """
        if not self.is_unloaded:
            self.state.unload()
            self._rebalance.cancel()

    def tombstones(self) -> list[KeyAndValue]:
        """Return the tombstones, which delete the group's records. Raises NON_EMPTY_GROUP if the group has members.

        Raises GROUP_ID_NOT_FOUND if the group is already deleted.
        """
        check_empty(self)
        return self.record_tombstones()

    def record_tombstones(self) -> list[KeyAndValue]:
        """Return the tombstones that delete all records of this group from the journal.

        If this group has replaced a group of another protocol, the journal contains the older group's records until a
        record of this group is stored. Until then, the result also contains their tombstones (`replaced`).
        """
        return [*self.state.replaced, (encode_key(GroupMetadataKey(group=self.group_id)), None)]

    # -- admin requests

    @property
    def protocol_type(self) -> str | None:
        return self.state.protocol_type

    @property
    def size(self) -> int:
        """The sum of the sizes of all members' metadata, in bytes."""
        return self.state.members.size

    @property
    def is_unloaded(self) -> bool:
        return self.state.current is GroupState.DEAD

    @property
    def state_name(self) -> str:
        return self.state.current.value

    @property
    def is_empty(self) -> bool:
        return self.state.current is GroupState.EMPTY
