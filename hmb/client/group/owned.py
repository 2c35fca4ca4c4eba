"""Stores the partitions that a group member owns, and decides which listener method is called next.

Two members must never read the same partition. Before a member gives up a partition, the consumer's thread
therefore calls the rebalance listener, which stops the reading. After this call, the member informs the
coordinator.

The methods of `OwnedPartitions` return a `ListenerCall`, which describes the next call of the rebalance
listener. After the listener call, the method `call_finished` updates the member's partitions.

For example, a member owns partitions a1 and a2, and its new assignment is a0 and a1:
    method call                    ListenerCall         partitions after the listener call
    revoke_all_except({a0, a1})    on_revoked({a2})     {a1}
    assign_all({a0, a1})           on_assigned({a0})    {a0, a1}
"""

from __future__ import annotations

from hmb.client.group.member import NO_PARTITIONS, ListenerCall, ListenerMethod, Owned


class OwnedPartitions:
    """The partitions of one member. Only `call_finished` changes the field `partitions`."""

    def __init__(self) -> None:
        self.partitions: Owned = NO_PARTITIONS

    def revoke_all_except(self, kept: Owned) -> ListenerCall | None:
        """Return a `ListenerCall` of `on_revoked`, for the member's partitions that are not in `kept`.

        Return None if `kept` contains all partitions. Later, `call_finished` removes the revoked partitions.
        """
        given_up = self.partitions - kept
        return ListenerCall(ListenerMethod.ON_REVOKED, given_up) if given_up else None

    def lose_all(self) -> ListenerCall | None:
        """Return a `ListenerCall` for `on_lost` with all partitions of the member.

        Return None if the member owns no partition.
        """
        return ListenerCall(ListenerMethod.ON_LOST, self.partitions) if self.partitions else None

    def assign_all(self, target: Owned) -> ListenerCall:
        """Return a `ListenerCall` for `on_assigned` with the partitions of `target` that the member does not own.

        The consumer's thread then makes this call.
        """
        return ListenerCall(ListenerMethod.ON_ASSIGNED, target - self.partitions)

    def call_finished(self, call: ListenerCall) -> None:
        """Update `partitions`, the partitions that the member owns, after a listener call has returned.

        After `on_assigned`, add the partitions of `call`. After `on_revoked` or `on_lost`, remove the partitions of
        `call`.
        """
        if call.method is ListenerMethod.ON_ASSIGNED:
            self.partitions |= call.partitions
        else:
            self.partitions -= call.partitions
