"""The state of a classic group: its members, its generation, its protocol, and the record that stores them.

`ClassicGroup` (group.py) and `Rebalance` (rebalance.py) use the same `ClassicState`. `ClassicGroup` changes the
members, and `Rebalance` changes the generation. Neither class sends a response or writes a record itself.
Instead, the classes append responses to the list `responses`, and records for the journal to the list `writes`.
They append a text about each event to the list `event_texts`.

For example, a group with two consumers is Stable in generation 3. The state of this group contains both members with
their assignments, the protocol "range", and the time at which the group became Stable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from hmb.coordinator.classic.members import Call, ClassicMember, ClassicMembers
from hmb.coordinator.classic.pending_members import PendingMembers
from hmb.coordinator.classic.record import decode_members, encode_group
from hmb.coordinator.classic.states import TRANSITIONS, GroupEvent
from hmb.coordinator.group import Write, unloaded
from hmb.coordinator.journal.records import GroupMetadataKey, GroupMetadataValue, KeyAndValue, encode_key
from hmb.protocol.consumer_protocol import CONSUMER
from hmb.protocol.enums import GroupState
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.join_group import JoinGroupResponse
from hmb.protocol.messages.sync_group import SyncGroupResponse

ClassicResponse: TypeAlias = JoinGroupResponse | SyncGroupResponse


class ClassicState:
    """The state of a classic group: its members, its generation and its protocol.

    - `current` is the state of the group, for example Stable. `move` takes the next state from the table
      `TRANSITIONS` (states.py). `restore` and `continue_as_stable` do not use this table.
    - `protocol` is the protocol of the current generation. It is None before the first generation, and in a
      generation without members.
    - `pending` contains the member ids that the group has sent to clients, and with which no client has joined yet.
    """

    def __init__(self, group_id: str, clock: Callable[[], int]) -> None:
        self.group_id = group_id
        self.current = GroupState.EMPTY
        self.timestamp = clock()  # ms since 1970: the time at which `current` last changed
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.members = ClassicMembers()
        self.pending = PendingMembers()
        self.responses: list[tuple[Call, ClassicResponse]] = []
        self.writes: list[Write] = []
        self.event_texts: list[str] = []
        self.replaced: Sequence[KeyAndValue] = ()  # tombstones of the KIP-848 or streams group that this group replaces
        self._clock = clock

    def restore(self, value: GroupMetadataValue) -> None:
        """Restore the state from the value of the group's record in the journal."""
        self.members = decode_members(value)
        self.current = GroupState.STABLE if self.members else GroupState.EMPTY
        self.timestamp = value.current_state_timestamp
        self.generation = value.generation
        self.protocol_type, self.protocol = value.protocol_type or None, value.protocol

    def continue_as_stable(self, members: ClassicMembers, generation: int) -> None:
        """Take over the members of a KIP-848 group that this group replaces (a downgrade), and become Stable."""
        self.members, self.generation = members, generation
        self.current = GroupState.STABLE
        self.protocol_type, self.protocol = CONSUMER, members.select_protocol()

    def move(self, event: GroupEvent) -> None:
        """Change `current` to the state that the table `TRANSITIONS` contains for the old state and this event."""
        self.current = TRANSITIONS.next(self.current, event)
        self.timestamp = self._clock()

    # -- members

    def check_loaded(self) -> None:
        """Raise COORDINATOR_NOT_AVAILABLE if the group was deleted or the broker stops. The client then tries again."""
        if self.current is GroupState.DEAD:
            raise unloaded(self.group_id, ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def check(self, member_id: str, group_instance_id: str | None, generation: int) -> ClassicMember:
        """Return the member with the id `member_id`. Raises KafkaError if an id or the generation is wrong."""
        self.check_loaded()
        member = self.members.check(member_id, group_instance_id)
        if generation != self.generation:
            found = f"the request contains generation {generation}, but the group is in generation {self.generation}"
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, f"{found}; join the group again")
        return member

    def remove(self, member_id: str) -> None:
        """Remove the member with this id. If the id is pending, remove it from the pending ids."""
        self.pending.pop(member_id, None)
        member = self.members.remove(member_id)
        if member is not None:
            self.refuse_waiting_calls(member, ErrorCode.UNKNOWN_MEMBER_ID)

    def refuse_waiting_calls(self, member: ClassicMember, error: ErrorCode, member_id: str = "") -> None:
        """Answer the member's waiting JoinGroup request and waiting SyncGroup request, if any, with an error."""
        if member.joining is not None:
            self.queue_response(member.joining, JoinGroupResponse(error_code=error, member_id=member_id))
        if member.syncing is not None:
            self.queue_response(member.syncing, SyncGroupResponse(error_code=error))
        member.joining = member.syncing = None

    def unload(self) -> None:
        """Answer the waiting requests of all members with NOT_COORDINATOR, and remove the members."""
        for member in self.members:
            self.refuse_waiting_calls(member, ErrorCode.NOT_COORDINATOR, member.member_id)
        self.members = ClassicMembers()
        self.pending.clear()
        self.move(GroupEvent.UNLOADED)

    # -- responses and records

    def queue_response(self, call: Call, response: ClassicResponse) -> None:
        self.responses.append((call, response))

    def queue_write(
        self, assignments: Mapping[str, bytes], on_stored: Callable[[KafkaError | None, int], None] | None = None
    ) -> None:
        """Queue the group's record for a write to the journal.

        `assignments` maps each member id to the member's assignment.

        An older group with the same id may have used another protocol, for example KIP-848. The write then also
        deletes the records of the older group, unless an earlier write has already deleted them.
        """
        value = encode_group(
            self.protocol_type,
            self.protocol,
            self.generation,
            self.timestamp,
            self.members,
            assignments,
        )

        def forget_tombstones(error: KafkaError | None, now: int) -> None:
            if error is None:
                self.replaced = ()
            if on_stored is not None:
                on_stored(error, now)

        records = [*self.replaced, (encode_key(GroupMetadataKey(group=self.group_id)), value)]
        self.writes.append(Write(records, forget_tombstones))

    def join_response_for(self, member: ClassicMember) -> JoinGroupResponse:
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

    def sync_response_for(self, member: ClassicMember) -> SyncGroupResponse:
        """Return the SyncGroup response for a member. The response contains the assignment of this member."""
        return SyncGroupResponse(
            protocol_type=self.protocol_type, protocol_name=self.protocol, assignment=member.assignment
        )
