"""The rebalance of a classic group: the barrier where its members meet, and the time limits on the way.

The first half waits until all members have joined, the second until the leader among them has assigned the work
(states.py).  The first member of an Empty group starts the *initial* rebalance, which waits a while for others
(`initial_delay`; again as long as more come, the rebalance timeout at most; KIP-134).  Every other one waits for all
members, up to the longest rebalance timeout among them: who has not joined by then is out, but for static members
(KIP-345), who stay until their sessions end.  Each rebalance makes a new *generation*.

Time limits, each of them a `..._deadline`:

    session     a member is heard of within its session timeout, or is out; one that waits for us need not be
    new member  its first JoinGroup waits 5 minutes at most: it has no id yet by which it could be heard of
    pending     an id that was given out is joined with within the session timeout, or is forgotten
    join, sync  all have joined, all have asked for their assignment, within the rebalance timeout

This half of the group's state machine knows no requests; those are in classic_group.py, which says how it is used.

Source: Kafka's `GroupMetadataManager`; KIP-62, KIP-134, KIP-345.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from hmb.coordinator.classic.members import Call, ClassicMember, ClassicMembers
from hmb.coordinator.classic.record import encode_group
from hmb.coordinator.classic.states import TRANSITIONS, GroupEvent, GroupState
from hmb.coordinator.group import Write
from hmb.coordinator.group_records import GroupMetadataKey, encode_key
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.join_group import JoinGroupResponse
from hmb.protocol.messages.sync_group import SyncGroupResponse

LOGGER = logging.getLogger(__name__)
NEW_MEMBER_TIMEOUT = 5 * 60 * 1000  # ms
SHORTEST_WAIT = 1000  # ms: for static members that are away, lest a rebalance timeout of 0 be due again at once


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """What the broker's settings group.* say.  Times in ms."""

    min_session_timeout: int = 6_000
    max_session_timeout: int = 1_800_000
    initial_delay: int = 3_000
    max_size: int = 2**31 - 1


class ClassicRebalance:
    """Members, generation and state of a group.

    - the state changes only as the table in states.py allows;
    - `protocol` is what the members of this generation agreed on, None while there is none;
    - who is in `unsynced` is a member; who is in `pending` is not.
    """

    kind: ClassVar[str] = "classic"

    def __init__(self, group_id: str, settings: GroupSettings, clock: Callable[[], int]) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.state_timestamp = clock()  # ms, on the wall's clock: since when
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.members = ClassicMembers()
        self.pending: dict[str, int] = {}  # ids given out and not joined with yet: until when they are good
        self.unsynced: set[str] = set()  # members that have not asked for their assignment since the last rebalance
        self.answers: list[tuple[Call, JoinGroupResponse | SyncGroupResponse]] = []
        self.writes: list[Write] = []
        self._settings = settings
        self._clock = clock
        self._initial = False  # whether the rebalance is the first one of an Empty group
        self._more_came = False  # during the initial rebalance
        self._delay = self._delay_left = 0  # of the initial rebalance: this wait, and what may come after it
        self._join_deadline: int | None = None
        self._sync_deadline: int | None = None

    # -- what happens outside

    def _answer(self, call: Call, response: JoinGroupResponse | SyncGroupResponse) -> None:
        self.answers.append((call, response))

    def _write(
        self, assignments: Mapping[str, bytes], then: Callable[[KafkaError | None, int], None] | None = None
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
        self.writes.append(Write(records) if then is None else Write(records, then))

    def _move(self, event: GroupEvent) -> None:
        self.state = TRANSITIONS.next(self.state, event)
        self.state_timestamp = self._clock()

    # -- the first half: all join

    def _rebalance(self, because: str, now: int) -> None:
        """Begin one; or see whether the one that is under way has all it waited for."""
        if TRANSITIONS.allows(self.state, GroupEvent.MEMBERS_CHANGED):
            self._prepare(because, now)
        else:
            self._complete_join_if_all_came(now)

    def _prepare(self, because: str, now: int) -> None:
        if self.state is GroupState.COMPLETING_REBALANCE:
            self._assign({}, now, ErrorCode.REBALANCE_IN_PROGRESS)
        self._sync_deadline = None
        self._initial = self.state is GroupState.EMPTY
        LOGGER.info("group %s: rebalance after generation %d: %s", self.group_id, self.generation, because)
        self._move(GroupEvent.MEMBERS_CHANGED)
        if self._initial:
            self._more_came = False
            self._delay = self._settings.initial_delay
            self._delay_left = max(self.members.rebalance_timeout - self._delay, 0)
            self._join_deadline = now + self._delay
        else:
            self._join_deadline = now + self.members.rebalance_timeout
            self._complete_join_if_all_came(now)

    def _complete_join_if_all_came(self, now: int) -> None:
        """But for the initial rebalance, which waits for those nobody knows of yet."""
        all_came = not self.pending and all(member.joining is not None for member in self.members)
        if self.state is GroupState.PREPARING_REBALANCE and not self._initial and all_came:
            self._complete_join(now)

    def _join_time_is_up(self, now: int) -> None:
        if self._initial and self._more_came and self._delay_left:
            self._more_came = False
            delay = min(self._settings.initial_delay, self._delay_left)
            self._delay, self._delay_left = delay, max(self._delay_left - self._delay, 0)
            self._join_deadline = now + delay
        else:
            self._complete_join(now)

    def _complete_join(self, now: int) -> None:
        """The next generation, of the members that came."""
        self._join_deadline, self._delay_left = None, 0
        for member in [member for member in self.members if member.joining is None and not member.is_static]:
            LOGGER.info("group %s: %s did not join in time", self.group_id, member.member_id)
            self._remove(member.member_id)
        if self.members and not self.members.elect_leader():  # all are static: wait until their sessions end
            self._join_deadline = now + max(SHORTEST_WAIT, self.members.rebalance_timeout)
            return
        self.generation += 1
        if self.members:
            self._begin_generation(now)
        else:
            self.protocol = None
            self._move(GroupEvent.ALL_LEFT)
            self._write({})

    def _begin_generation(self, now: int) -> None:
        self.protocol = self.members.select_protocol()
        self._move(GroupEvent.ALL_JOINED)
        for member in self.members:
            if member.joining is not None:
                self._answer(member.joining, self._generation_for(member))
            member.joining, member.is_new = None, False
            member.deadline = now + member.session_timeout
        self.unsynced = set(self.members.by_id)
        self._sync_deadline = now + self.members.rebalance_timeout

    def _generation_for(self, member: ClassicMember) -> JoinGroupResponse:
        """What the group agreed on, for this member; for the leader, who is in it."""
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

    # -- the second half: all get their assignment

    def _store(self, assignments: Mapping[str, bytes]) -> None:
        """The leader's assignment counts, and goes out, once it is written."""
        generation = self.generation

        def then(error: KafkaError | None, now: int) -> None:
            if self.state is not GroupState.COMPLETING_REBALANCE or self.generation != generation:
                return  # the members have been told of the next rebalance already
            if error is not None:
                self._assign({}, now, error.code)
                self._rebalance(f"the assignment could not be stored ({error.message})", now)
                return
            self._move(GroupEvent.ASSIGNED)
            self._assign(assignments, now)

        self._write(assignments, then)

    def _assign(self, assignments: Mapping[str, bytes], now: int, error: ErrorCode = ErrorCode.NONE) -> None:
        """Give each member its part; those that wait for it hear of it, or of the error."""
        for member in self.members:
            member.assignment = assignments.get(member.member_id, b"")
            if member.syncing is not None:
                self._answer(member.syncing, SyncGroupResponse(error_code=error) if error else self._part_of(member))
                member.syncing, member.deadline = None, now + member.session_timeout

    def _part_of(self, member: ClassicMember) -> SyncGroupResponse:
        return SyncGroupResponse(
            protocol_type=self.protocol_type, protocol_name=self.protocol, assignment=member.assignment
        )

    # -- members that go

    def _remove(self, member_id: str) -> None:
        """Forget a member, or an id that was given out."""
        self.pending.pop(member_id, None)
        self.unsynced.discard(member_id)
        member = self.members.remove(member_id)
        if member is not None:
            self._dismiss(member, ErrorCode.UNKNOWN_MEMBER_ID)

    def _dismiss(self, member: ClassicMember, error: ErrorCode, member_id: str = "") -> None:
        """Answer what it waits for."""
        if member.joining is not None:
            self._answer(member.joining, JoinGroupResponse(error_code=error, member_id=member_id))
        if member.syncing is not None:
            self._answer(member.syncing, SyncGroupResponse(error_code=error))
        member.joining = member.syncing = None

    def unload(self) -> None:
        """The broker stops, or the group is deleted: nobody waits any longer, and nothing changes from now on."""
        if self.state is GroupState.DEAD:
            return
        for member in self.members:
            self._dismiss(member, ErrorCode.NOT_COORDINATOR, member.member_id)
        self.members = ClassicMembers()
        self.pending.clear()
        self._join_deadline = self._sync_deadline = None
        self._move(GroupEvent.UNLOADED)

    @property
    def size(self) -> int:
        """The memory, in bytes, that the members' metadata take."""
        return self.members.size

    @property
    def is_unloaded(self) -> bool:
        return self.state is GroupState.DEAD

    # -- time

    def next_deadline(self) -> int | None:
        """When something happens unless somebody is heard of before."""
        limits = [member.expires_at for member in self.members]
        limits += [*self.pending.values(), self._join_deadline, self._sync_deadline]
        return min((limit for limit in limits if limit is not None), default=None)

    def tick(self, now: int) -> None:
        """Do what is due."""
        for member_id in [member_id for member_id, limit in self.pending.items() if limit <= now]:
            LOGGER.info("group %s: nobody joined as %s in time", self.group_id, member_id)
            self._remove(member_id)
            self._complete_join_if_all_came(now)
        for member in list(self.members):
            if member.member_id in self.members and (limit := member.expires_at) is not None and limit <= now:
                self._expire(member, now)
        if self._join_deadline is not None and self._join_deadline <= now:
            self._join_time_is_up(now)
        if self._sync_deadline is not None and self._sync_deadline <= now:
            self._sync_time_is_up(now)

    def _expire(self, member: ClassicMember, now: int) -> None:
        self._remove(member.member_id)
        if self.state is GroupState.PREPARING_REBALANCE:
            LOGGER.info("group %s: the session of %s ended", self.group_id, member.member_id)
            self._complete_join_if_all_came(now)
        else:
            self._rebalance(f"the session of {member.member_id} ended", now)

    def _sync_time_is_up(self, now: int) -> None:
        self._sync_deadline = None
        missing = sorted(self.unsynced)
        for member_id in missing:
            self._remove(member_id)
        self._prepare(f"{missing} did not ask for their assignment in time", now)
