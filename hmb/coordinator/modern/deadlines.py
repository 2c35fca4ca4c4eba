"""The deadlines of the members of a KIP-848 group: sessions and revocations.

- The *session* of a member ends if the member sends no heartbeat within the session timeout. The group then removes it.
- A member that must give up partitions has a *revocation* deadline, which is its own rebalance timeout. If the member
  is still in the same epoch at the deadline, the group removes it. Other members wait for its partitions.

For example, the session timeout is 45 s, and a member with a rebalance timeout of 60 s must give up partition 2 at
second 0. It sends heartbeats every 5 s, so its session does not end. It never confirms that it gave up partition 2, so
the group removes it at second 60.

Source: KIP-848.
"""

from __future__ import annotations

from collections.abc import Iterable

from hmb.coordinator.modern.member import ConsumerMember
from hmb.coordinator.modern.states import MemberState


class MemberDeadlines:
    """The deadlines of a group's members by member id. Times in ms of a clock that never jumps."""

    def __init__(self) -> None:
        self._sessions: dict[str, int] = {}
        self._revocations: dict[str, tuple[int, int]] = {}  # by member id: the epoch to leave, and the deadline

    def start_session(self, member_id: str, deadline: int) -> None:
        """Start or extend the session of a member."""
        self._sessions[member_id] = deadline

    def watch_revocation(self, member: ConsumerMember, now: int) -> None:
        """Start the revocation deadline of a member that must give up partitions, and end that of any other member."""
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            self._revocations[member.member_id] = member.epoch, now + member.rebalance_timeout
        else:
            self.end_revocation(member.member_id)

    def end_revocation(self, member_id: str) -> None:
        self._revocations.pop(member_id, None)

    def remove(self, member_id: str) -> None:
        """Remove the deadlines of a member that is no longer in the group."""
        self._sessions.pop(member_id, None)
        self.end_revocation(member_id)

    def restart(self, members: Iterable[ConsumerMember], session_timeout: int, now: int) -> None:
        """Start the deadlines of restored members. A session that already runs keeps its deadline."""
        known, self._sessions = self._sessions, {}
        self._revocations.clear()
        for member in members:
            self._sessions[member.member_id] = known.get(member.member_id, now + session_timeout)
            self.watch_revocation(member, now)

    def clear(self) -> None:
        self._sessions.clear()
        self._revocations.clear()

    def next(self) -> int | None:
        """Return the earliest deadline (ms), or None if the group has none."""
        return min([*self._sessions.values(), *(limit for _, limit in self._revocations.values())], default=None)

    def ended_sessions(self, now: int) -> list[str]:
        """Return the member ids whose sessions have ended."""
        return [member_id for member_id, limit in self._sessions.items() if limit <= now]

    def take_late_revocations(self, now: int) -> list[tuple[str, int]]:
        """Remove the revocation deadlines that have passed. Return pairs of member id and old epoch."""
        late = [(member_id, epoch) for member_id, (epoch, limit) in self._revocations.items() if limit <= now]
        for member_id, _ in late:
            self.end_revocation(member_id)
        return late
