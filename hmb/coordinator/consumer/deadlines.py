"""The additional deadlines of a KIP-848 group, for members that use the classic protocol.

During an online migration, some members of a KIP-848 group use the classic protocol. Such a member has no
revocation deadline (modern/deadlines.py), but it can have two other deadlines:
- The *join* deadline: if a response asks the member to join again, the member must send JoinGroup within its
  rebalance timeout.
- The *sync* deadline: after a response to JoinGroup, the member must send SyncGroup within its rebalance
  timeout.

If a member misses its join deadline or its sync deadline, the group removes the member.
"""

from __future__ import annotations

from collections.abc import Iterable

from hmb.coordinator.modern.deadlines import MemberDeadlines
from hmb.coordinator.modern.state import ModernMember


class ConsumerDeadlines(MemberDeadlines):
    """The deadlines of all members of a KIP-848 group.

    During an online migration, some members of the group use the classic protocol. Only these members can have a
    join deadline (for their next JoinGroup request) or a sync deadline (for their next SyncGroup request).
    """

    def __init__(self) -> None:
        super().__init__()
        self._joins: dict[str, int] = {}
        self._syncs: dict[str, int] = {}

    def start_join(self, member_id: str, deadline: int) -> None:
        """Start the deadline for a member's next JoinGroup request, unless this deadline is already running."""
        self._joins.setdefault(member_id, deadline)

    def joined(self, member_id: str, sync_deadline: int) -> None:
        """Remove the join and revocation deadlines of a member that has sent JoinGroup. Start its sync deadline."""
        self.end_classic(member_id)
        self.end_revocation(member_id)
        self._syncs[member_id] = sync_deadline

    def end_sync(self, member_id: str) -> None:
        self._syncs.pop(member_id, None)

    def end_classic(self, member_id: str) -> None:
        """Remove a member's deadlines for its next JoinGroup request and its next SyncGroup request.

        Only members that use the classic protocol can have these two deadlines.
        """
        self._joins.pop(member_id, None)
        self._syncs.pop(member_id, None)

    def remove(self, member_id: str) -> None:
        super().remove(member_id)
        self.end_classic(member_id)

    def restart(self, members: Iterable[tuple[ModernMember, int]], now: int) -> None:
        super().restart(members, now)
        self._joins.clear()  # The next heartbeat of a member starts its join deadline again.
        self._syncs.clear()

    def clear(self) -> None:
        super().clear()
        self._joins.clear()
        self._syncs.clear()

    def next(self) -> int | None:
        limits = (super().next(), *self._joins.values(), *self._syncs.values())
        return min((limit for limit in limits if limit is not None), default=None)

    def late_to_join(self, now: int) -> list[str]:
        """Return the ids of the members that have not sent JoinGroup in time."""
        return [member_id for member_id, limit in self._joins.items() if limit <= now]

    def late_to_sync(self, now: int) -> list[str]:
        """Return the ids of the members that have not sent SyncGroup in time."""
        return [member_id for member_id, limit in self._syncs.items() if limit <= now]
