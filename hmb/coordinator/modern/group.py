"""The base class of all modern groups: KIP-848 groups, share groups and streams groups.

Kafka calls KIP-848 groups, share groups and streams groups *modern*. In a modern group, the broker computes a
target assignment, which says what each member should read. At each heartbeat, a member gets one step closer to
its target. The base class contains what is the same in all three kinds of groups: the deadlines of the members,
and the state that the broker restores after a restart. Each kind has its own requests, members and assignors,
so each subclass handles its own heartbeats.

For example, a member of a share group sends its last heartbeat at second 0, and the session timeout is 45 s. At second
45, `tick` finds that the session has ended, and removes the member. The method `_on_removed` of `ShareGroup` then
increases the group epoch. At the next heartbeat of another member, the group computes a new target assignment.

Source: Kafka's `ModernGroup`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from hmb.coordinator.cluster_topics import ClusterTopics
from hmb.coordinator.group import Commit, Group, check_empty
from hmb.coordinator.journal.records import Key, KeyAndValue
from hmb.coordinator.modern.deadlines import MemberDeadlines
from hmb.coordinator.modern.member_epoch import check_fetch_epoch
from hmb.coordinator.modern.settings import ModernGroupSettings
from hmb.coordinator.modern.state import ModernState
from hmb.coordinator.modern.states import GROUP_STATES, GroupFacts, StateCondition, state_of
from hmb.protocol.enums import GroupType

StateT = TypeVar("StateT", bound=ModernState[Any, Any])
SettingsT = TypeVar("SettingsT", bound=ModernGroupSettings)
LEAVES = "the member leaves"  # callers pass this text to `remove` as the reason when a member asks to leave


class ModernGroup(ABC, Generic[StateT, SettingsT]):
    """One modern group, as a state machine that uses no threads and no disk. `now` is a time in ms.

    - `state` contains the members, the epochs and the target assignment.
    - `writes` contains the records that the broker must write to the journal. It is the same list as
      `state.writes`.
    - `deadlines` contains the time at which each member's session ends. If a member must give up partitions,
      `deadlines` also contains the time limit for this.
    """

    kind: ClassVar[GroupType]
    group_states: ClassVar[Iterable[StateCondition]] = GROUP_STATES
    state_class: type[StateT]

    def __init__(
        self,
        group_id: str,
        settings: Callable[[str], SettingsT],
        topics: ClusterTopics,
        clock: Callable[[], int],
    ) -> None:
        """Create an empty group. `clock` returns the time in ms since 1970."""
        self.group_id = group_id
        self.protocol_type: str | None = self.kind
        self.state = self.state_class(group_id, self.resume)
        self.responses: list[tuple[Any, Any]] = []  # only responses to requests of the classic protocol (migration/)
        self.writes, self.event_texts = self.state.writes, self.state.event_texts
        self.is_unloaded = False
        # The classic group that replaces this group in a downgrade, or None. Only a KIP-848 group can have a successor.
        self.successor: Group | None = None
        self._settings = settings
        self._topics = topics
        self._clock = clock
        self.deadlines = MemberDeadlines()

    @property
    def is_empty(self) -> bool:
        return self.state.is_empty

    @property
    def state_name(self) -> str:
        epoch = self.state.assignment_epoch
        # The handler of ListGroups reads this property without the group's lock, so another thread can add a member
        # during the loop. A loop over a changing dict fails, but a loop over a copy does not.
        members = self.state.members.copy().values()
        facts = GroupFacts(
            is_unloaded=self.is_unloaded,
            is_empty=self.is_empty,
            is_ready=self._is_ready(),
            is_target_old=self.state.epoch > epoch,
            is_reconciled=all(member.is_reconciled_to(epoch) for member in members),
        )
        return state_of(facts, self.group_states).value

    def _is_ready(self) -> bool:
        return True

    @abstractmethod
    def reads(self, topic: str) -> bool:
        """Return whether a member reads the topic. A share group returns False: it has no committed offsets."""

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Check that the sender of an OffsetFetch request is allowed to read the group's committed offsets.

        A request without a member id and without a member epoch is always allowed. Raises UNKNOWN_MEMBER_ID if the
        group has no such member. Raises STALE_MEMBER_EPOCH if `epoch` is not the member's current epoch.
        """
        if member_id is not None or epoch >= 0:
            check_fetch_epoch(epoch, self.state.known(member_id or "").epoch)

    # -- deadlines

    def last_heartbeats(self) -> dict[str, int]:
        """Return the time (ms) of the last heartbeat of each member."""
        return self.deadlines.last_heartbeats()

    def next_deadline(self) -> int | None:
        return self.deadlines.next()

    def tick(self, now: int) -> None:
        """Act on the deadlines that have passed: for example, remove members whose sessions have ended."""
        self._meet_deadlines(now)
        self.state.finish()

    def _meet_deadlines(self, now: int) -> None:
        if silent := self.deadlines.ended_sessions(now):
            self.remove(silent, "the session has ended", now)
        for member_id, epoch in self.deadlines.take_late_revocations(now):
            if self.state.members[member_id].epoch == epoch:
                self.remove([member_id], f"the member did not leave epoch {epoch} within its rebalance timeout", now)

    def remove(self, member_ids: Sequence[str], reason: str, now: int) -> None:
        """Remove members. The caller must then call `state.finish`, so that the journal stores the removal."""
        for member_id in member_ids:
            self.event_texts.append(f"member {member_id} is removed: {reason}")
            self.state.remove(member_id)
            self.deadlines.remove(member_id)
        self._on_removed(member_ids, reason)

    # -- start and end

    def replay(self, key: Key, value: Any) -> None:
        """Restore a part of the group from one record of the journal, when the broker starts.

        The caller passes only the newest record of each key. The order of the records does not matter.
        """
        self.state.replay(key, value)

    def resume(self, now: int) -> None:
        """Set the deadlines of all members, after the broker has restored the group from the journal.

        If the session of a member is already running, the session keeps its deadline.
        """
        timeout = self._settings(self.group_id).session_timeout
        self.deadlines.restart([(member, timeout) for member in self.state.members.values()], now)

    def unload(self) -> None:
        self.is_unloaded = True
        self.deadlines.clear()

    def tombstones(self) -> list[KeyAndValue]:
        check_empty(self)
        return self.state.all_tombstones()

    # -- methods that each kind of group defines

    @abstractmethod
    def _on_removed(self, member_ids: Sequence[str], reason: str) -> None:
        """Increase the group epoch, because members were removed."""

    @property
    @abstractmethod
    def size(self) -> int: ...

    @abstractmethod
    def check_commit(self, commit: Commit, now: int) -> None: ...


AnyModernGroup: TypeAlias = ModernGroup[Any, Any]
