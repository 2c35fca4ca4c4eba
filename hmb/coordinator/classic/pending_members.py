"""The pending members of a classic group: member ids that the coordinator has assigned and no client has used yet.

A client without a member id receives one with the error MEMBER_ID_REQUIRED, and joins again with it (KIP-394). Without
this step, a client whose connection breaks during its first JoinGroup would leave behind a member that nobody can
remove before the session ends. A pending member is not a member, but a rebalance waits for it.

Source: KIP-394; Kafka's `pendingJoinMembers`.
"""

from __future__ import annotations

MOST_PENDING = 1000  # pending member ids of a group; a client can request any number of them


class PendingMembers(dict[str, int]):
    """The assigned member ids with which no client has joined, and the deadline (ms) of each id."""

    def add(self, member_id: str, deadline: int) -> None:
        """Add a member id, and forget the oldest id if the group has too many.

        The client of a forgotten id receives UNKNOWN_MEMBER_ID and requests a new id.
        """
        self[member_id] = deadline
        if len(self) > MOST_PENDING:
            del self[next(iter(self))]

    def expired(self, now: int) -> list[str]:
        """Return the member ids whose deadlines have passed."""
        return [member_id for member_id, deadline in self.items() if deadline <= now]
