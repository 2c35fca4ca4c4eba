"""The pending members of a classic group: member ids that the coordinator has assigned but no client has used yet.

A client that joins without a member id receives a new id in a response with the error MEMBER_ID_REQUIRED. The client
then joins again with this id (KIP-394). Until then, the id is *pending* and does not belong to a member. A rebalance
waits until the client has joined with this id.

Problem: without pending ids, a broken connection could leave a useless member in the group. For example, a client sends
its first JoinGroup, becomes a member, and loses the connection before it receives its member id. The client then joins
again as another member, and the group keeps the first member until its session ends.

Source: KIP-394; Kafka's `pendingJoinMembers`.
"""

from __future__ import annotations

MAX_PENDING = 1000  # limit for the pending ids of one group, because a client can request many ids


class PendingMembers(dict[str, int]):
    """The pending (not yet used) member ids of one group.

    The dict maps each id to the time (ms) at which the id expires.
    """

    def add(self, member_id: str, deadline: int) -> None:
        """Add a member id. If the group then has more than `MAX_PENDING` pending ids, remove the oldest id.

        A client that joins with a removed id receives the error UNKNOWN_MEMBER_ID. The client then requests a new id.
        """
        self[member_id] = deadline
        if len(self) > MAX_PENDING:
            del self[next(iter(self))]

    def expired(self, now: int) -> list[str]:
        """Return the member ids whose deadlines have passed."""
        return [member_id for member_id, deadline in self.items() if deadline <= now]
