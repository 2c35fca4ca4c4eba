"""The leader of a classic group assigns the partitions to all members.

The coordinator names one member as the leader of a generation. The leader receives the subscriptions of all members.
The leader looks up the number of partitions of each subscribed topic, calls the assignor, and sends the assignments in
SyncGroup.

At regular intervals, the leader looks up how many partitions each topic has. If a topic has gained or lost
partitions, the leader starts a rebalance.

While a subscribed topic does not exist, the leader looks up all subscribed topics every `heartbeat_interval`
seconds.
"""

from __future__ import annotations

from collections.abc import Mapping

from hmb.client.group import member_metadata
from hmb.client.group.interface import MemberSettings
from hmb.client.group.member import TopicLookup


class GroupLeader:
    """Does the leader's work in one generation of a group: looks up topics, and assigns their partitions."""

    def __init__(
        self, settings: MemberSettings, assignor: str, members: list[member_metadata.JoinedMember], now: float
    ) -> None:
        """Decode the members' subscriptions. Raises ProtocolError if a subscription cannot be decoded."""
        self._settings, self._assignor, self._members = settings, assignor, members
        self._topics = member_metadata.subscribed_topics(members)
        self._counts: Mapping[str, int] | None = None  # the last lookup: topic -> number of partitions
        self.lookup_at = now  # the time of the next lookup
        self.assignments: dict[str, bytes] = {}  # member id -> assignment; empty until `assign` is called

    def lookup(self) -> TopicLookup:
        """Return a request for the number of partitions of each subscribed topic."""
        return TopicLookup(names=self._topics)

    def looked_up(self, counts: Mapping[str, int], now: float) -> bool:
        """Store the number of partitions of each topic. Return True if a number has changed since the last lookup.

        The first lookup returns False, because it has no earlier numbers.
        """
        has_all = counts.keys() >= self._topics
        self.lookup_at = now + (self._settings.metadata_max_age if has_all else self._settings.heartbeat_interval)
        has_changed = self._counts is not None and counts != self._counts
        self._counts = counts
        return has_changed

    def assign(self) -> None:
        """Let the assignor divide the partitions among the members, and store the result in `assignments`.

        The caller must first pass each topic's number of partitions to the method `looked_up`.
        """
        self.assignments = member_metadata.assign(self._assignor, self._members, self._counts or {})
