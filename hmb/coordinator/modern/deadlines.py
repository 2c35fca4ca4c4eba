"""Stores the deadlines of a modern group's members: for the next heartbeat, and for giving up partitions.

A *modern* group is a KIP-848 group, a share group or a streams group.

A member can have two deadlines:
- *Session.* A member must send its next heartbeat within the session timeout. Otherwise its session ends, and
  the group removes the member.
- *Revocation.* When a member must give up partitions, it must do so within its rebalance timeout. If the member
  is still in its old epoch at this deadline, the group removes the member, because other members wait for the
  partitions.

Members of a streams group give up tasks instead of partitions. Members of a share group have no deadline for
giving up partitions, because several members may read the same partition.

During an online migration, some members of a KIP-848 group use the classic protocol. Such a member can have a
deadline for its next JoinGroup request, and a deadline for its next SyncGroup request (consumer/deadlines.py).

For example, the session timeout is 45 s, and the rebalance timeout of a member is 60 s. At second 0, the group asks the
member to give up partition 2. The member sends a heartbeat every 5 s, so its session does not end. The member never
confirms that it has given up partition 2, so the group removes the member at second 60.

Source: KIP-848.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hmb.coordinator.modern.state import ModernMember


class SessionDeadline(NamedTuple):
    """The session of a member: the time at which it ends, and its length. Both are in ms."""

    deadline: int
    timeout: int


class MemberDeadlines:
    """The deadlines of a group's members by member id. Times are in ms from a clock that never jumps.

    - Each member has a session deadline.
    - A member has a revocation deadline only while it must give up partitions.
    """

    def __init__(self) -> None:
        self._sessions: dict[str, SessionDeadline] = {}
        self._revocations: dict[str, tuple[int, int]] = {}  # member id -> (old epoch, deadline)

    def start_session(self, member_id: str, timeout: int, now: int) -> None:
        """Start or extend the session of a member. The session ends `timeout` ms later."""
        self._sessions[member_id] = SessionDeadline(now + timeout, timeout)

    def watch_revocation(self, member: ModernMember, now: int) -> None:
        """Start the revocation deadline of a member: the time by which the member must give up partitions.

        If the member does not have to give up any partitions, remove the member's revocation deadline.
        """
        timeout = member.revocation_timeout
        if timeout is None:
            self.end_revocation(member.member_id)
        else:
            self._revocations[member.member_id] = member.epoch, now + timeout

    def end_revocation(self, member_id: str) -> None:
        self._revocations.pop(member_id, None)

    def remove(self, member_id: str) -> None:
        """Remove all deadlines of a member that is no longer in the group."""
        self._sessions.pop(member_id, None)
        self.end_revocation(member_id)

    def restart(self, members: Iterable[tuple[ModernMember, int]], now: int) -> None:
        """Set the deadlines of all members after the group has been restored from its stored records.

        Each item of `members` is a pair `(member, session timeout)`. A session that is already running keeps its
        deadline. All other session and revocation timeouts start at `now`.
        """
        known, self._sessions = self._sessions, {}
        self._revocations.clear()
        for member, timeout in members:
            self._sessions[member.member_id] = known.get(member.member_id, SessionDeadline(now + timeout, timeout))
            self.watch_revocation(member, now)

    def clear(self) -> None:
        self._sessions.clear()
        self._revocations.clear()

    def last_heartbeats(self) -> dict[str, int]:
        """Return a dict: member id -> the time (ms) of the last heartbeat of this member."""
        return {member_id: session.deadline - session.timeout for member_id, session in self._sessions.items()}

    def next(self) -> int | None:
        """Return the earliest deadline (ms), or None if the group has none."""
        limits = [session.deadline for session in self._sessions.values()]
        return min([*limits, *(limit for _, limit in self._revocations.values())], default=None)

    def ended_sessions(self, now: int) -> list[str]:
        """Return the ids of the members whose sessions have ended."""
        return [member_id for member_id, session in self._sessions.items() if session.deadline <= now]

    def take_late_revocations(self, now: int) -> list[tuple[str, int]]:
        """Return the revocation deadlines that have passed, and remove them from this object.

        A revocation deadline is the time by which a member must give up partitions.

        Each item of the result is a pair `(member id, epoch)`. The number `epoch` is the member's epoch at the time
        when the deadline was set. If the member is still in this epoch, it has not given up its partitions.
        """
        late = [(member_id, epoch) for member_id, (epoch, limit) in self._revocations.items() if limit <= now]
        for member_id, _ in late:
            self.end_revocation(member_id)
        return late
