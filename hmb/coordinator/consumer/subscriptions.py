"""The subscriptions of a KIP-848 group: which topics its members read, and whether these topics have changed.

A member subscribes to names of topics, to a regular expression, or to both. The broker compares the expression with the
names of all topics. The group epoch increases by 1 in two cases: a member changes its subscription, or a topic that a
member reads is created, is deleted or gets more partitions. The group then computes a new target assignment.

For example, a member subscribes to the expression `orders-.*`, and the topic "orders-eu" exists. Then somebody creates
the topic "orders-us". At the next heartbeat of any member, `refresh` finds that the expression matches a new topic, and
increases the group epoch from 4 to 5.

The group calls `refresh` while it handles a request of one member, usually a heartbeat. For each member's
regular expression, `refresh` finds the matching topics. It skips topics for which the sender of the request
does not have the permission DESCRIBE.

As in Kafka, members with the same regular expression share one set of matching topics. For example, only
member A has the permission DESCRIBE for "orders-eu", and A's heartbeat adds this topic to the set. Member B can
then get partitions of "orders-eu" without this permission.

Source: KIP-848, KIP-1101; Kafka's `ModernGroup`.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from hmb.coordinator.cluster_topics import (
    AssignableTopic,
    ClusterTopics,
    MayDescribe,
    existing_topics,
    metadata_hash,
)
from hmb.coordinator.consumer.member import ConsumerMember
from hmb.coordinator.consumer.state import ConsumerState
from hmb.coordinator.consumer.topic_regex import topic_regex


class Subscriptions:
    """The topics that the members of one group read.

    After `refresh`, `state.regexes` contains exactly the regular expressions to which at least one member subscribes.
    """

    def __init__(self, state: ConsumerState, topics: ClusterTopics, clock: Callable[[], int]) -> None:
        self._state = state
        self._topics = topics
        self._clock = clock
        self._version = -1  # the value of `topics.version` at the last refresh

    def refresh(self, changed: bool, may_describe: MayDescribe) -> None:
        """Increase the group epoch if a subscription or a subscribed topic has changed since the last refresh.

        The caller sets `changed` to True if a member has changed its subscription. This method finds changed topics
        itself.
        """
        version = self._topics.version  # read first, so that a change during this method causes another refresh
        if not changed and version == self._version:
            return
        self._forget_unused(version)
        changed |= self._match(version, may_describe)
        found = metadata_hash(self.topics())
        if changed or found != self._state.metadata_hash:
            self._state.increase_epoch(found)
        self._version = version

    def members_removed(self) -> None:
        """Increase the group epoch, because members were removed.

        Also delete each regular expression to which no member subscribes any more.
        """
        self._forget_unused(self._topics.version)
        self._state.increase_epoch(metadata_hash(self.topics()))

    def forget_version(self) -> None:
        """Make the next `refresh` check the subscribed topics, even if no topic of the cluster has changed.

        The group calls this method after the coordinator has restored the group from the journal. The journal may
        lack changes of the last `refresh`. The next `refresh` makes these changes again.
        """
        self._version = -1

    def _forget_unused(self, version: int) -> None:
        for regex in self._state.regexes.keys() - self._subscribed():
            self._state.set_regex(regex, None, version, self._clock())

    def _subscribed(self) -> set[str]:
        return {member.regex for member in self._state.members.values() if member.regex}

    def _match(self, version: int, may_describe: MayDescribe) -> bool:
        """Update the set of matching topics of each regular expression. Return whether any set has changed."""
        subscribed = self._subscribed()
        names = [name for name in self._topics.names() if may_describe(name)] if subscribed else []
        changed = False
        for regex in sorted(subscribed):
            compiled = topic_regex(regex)
            matched = frozenset(name for name in names if compiled.matches(name))
            if self._state.regexes.get(regex) != matched:
                self._state.set_regex(regex, matched, version, self._clock())
                changed = True
        return changed

    def _names_of(self, member: ConsumerMember) -> frozenset[str]:
        """Return the names of the topics that a member reads: those that it lists, and those that its regex matches."""
        return member.topics | self._state.regexes.get(member.regex, frozenset())

    def ids_of(self, member: ConsumerMember) -> frozenset[UUID]:
        """Return the ids of all existing topics that a member reads."""
        return frozenset(topic.id for topic in existing_topics(self._topics, self._names_of(member)))

    def topics(self) -> list[AssignableTopic]:
        """Return all existing topics that at least one member reads."""
        names = {name for member in self._state.members.values() for name in self._names_of(member)}
        return existing_topics(self._topics, names)

    def include(self, topic: str) -> bool:
        """Return whether at least one member reads the topic."""
        return any(topic in self._names_of(member) for member in self._state.members.values())
